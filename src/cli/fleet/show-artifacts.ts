import { createReadStream } from 'node:fs';
import { HotcellError } from '../../core/errors.ts';
import { listArtifacts } from '../../fleet/logs/task-artifacts.ts';
import { Task } from '../../fleet/task-graph.ts';
import { toPrintable } from '../../lib/printable.ts';
import type { Terminal } from '../terminal.ts';
import type { OpenFeature } from './open-feature.ts';

/** Prints what is kept of a task, file after file. */
export async function showArtifacts({ paths }: OpenFeature, task: string, terminal: Terminal): Promise<void> {
  // SECURITY: it becomes part of a path.
  const id = Task.shape.id.safeParse(task);
  const files = id.success ? listArtifacts(paths, id.data) : [];
  if (files.length === 0) {
    throw new HotcellError('FLEET_UNKNOWN', `nothing is kept of task ${JSON.stringify(task)}`, {
      hint: `hotcell fleet status --feature ${paths.feature} --tasks lists the tasks; logging.ephemeral_retain_on_success keeps what is complete.`,
    });
  }
  for (const file of files) {
    terminal.line(terminal.paint.bold(`==> ${toPrintable(file)} <==`));
    await print(file, terminal);
    terminal.line('');
  }
}

async function print(file: string, terminal: Terminal): Promise<void> {
  for await (const chunk of createReadStream(file, { encoding: 'utf8' })) {
    if (terminal.unread.aborted) return;
    // SECURITY: what an agent printed may hold commands for the terminal.
    const text = toPrintable(String(chunk).replaceAll('\r\n', '\n'));
    if (!terminal.stdout.write(text)) await new Promise((resolve) => terminal.stdout.write('', resolve));
  }
}
