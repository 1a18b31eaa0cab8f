import type * as z from 'zod';
import type { SessionExecReply, SessionExecRequest } from '../wire/session-exec.ts';
import type { CreateSessionRequest, RuntimeType, SessionReply } from '../wire/sessions.ts';
import type { IDEFile } from './workspace-sync.ts';

export type RunnerSession = SessionReply;
export type ExecRequest = Omit<z.input<typeof SessionExecRequest>, 'stream' | 'background'>;
export type ExecReply = SessionExecReply;
export type SessionOptions = Omit<z.input<typeof CreateSessionRequest>, 'project_id' | 'runtime_type'>;

/** What an IDE needs of a runner. */
export interface IRunnerClient {
  createSession(
    projectId: string,
    runtimeType: RuntimeType,
    options?: SessionOptions,
  ): Promise<RunnerSession>;
  exec(sessionId: string, request: ExecRequest): Promise<ExecReply>;
  syncWorkspace(sessionId: string, files: readonly IDEFile[]): Promise<void>;
  killProcess(sessionId: string): Promise<void>;
  destroySession(sessionId: string): Promise<void>;
}
