import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { EndpointSettings } from './endpoint.ts';
import { given } from './given-text.ts';

export const DEFAULT_SOCKET = '/var/run/docker.sock';

type UserFolders = Pick<EndpointSettings, 'HOME' | 'XDG_RUNTIME_DIR' | 'uid'>;

/** Where engines listen when nobody says otherwise: Docker's, Docker Desktop's, and those of its relatives. */
export function usualSockets({ HOME, XDG_RUNTIME_DIR, uid }: UserFolders): string[] {
  const runtime = given(XDG_RUNTIME_DIR) ?? (uid === undefined ? undefined : `/run/user/${uid}`);
  const ofUser = (path: string): string[] => below(given(HOME), path);
  const ofSession = (path: string): string[] => below(runtime, path);
  return [
    DEFAULT_SOCKET,
    ...ofUser('.docker/run/docker.sock'),
    ...ofUser('.colima/default/docker.sock'),
    ...ofUser('.rd/docker.sock'),
    ...ofSession('docker.sock'),
    '/run/podman/podman.sock',
    ...ofSession('podman/podman.sock'),
  ];
}

/** The first that is there; Docker's own if none is, so that the error names what people expect. */
export function pickSocket(candidates: readonly string[]): string {
  return candidates.find(isSocket) ?? DEFAULT_SOCKET;
}

function isSocket(path: string): boolean {
  try {
    return statSync(path).isSocket();
  } catch {
    // Not there, or in a folder that is closed to us.
    return false;
  }
}

function below(folder: string | undefined, path: string): string[] {
  return folder === undefined ? [] : [join(folder, path)];
}
