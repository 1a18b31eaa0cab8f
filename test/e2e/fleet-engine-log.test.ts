import { afterAll, beforeAll, expect } from 'vitest';
import { engineApi, whyNoEngine } from '../support/docker-engine.ts';
import { mahabharatha } from '../support/fleet-command.ts';
import { untilNothingIsLeft } from '../support/fleet-remains.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';
import { startFleet } from '../support/fleet-ways.ts';
import { useWorkerImage } from '../support/fleet-worker-image.ts';
import { waitFor } from '../support/leftovers.ts';
import { testThatNeeds } from '../support/needs.ts';

const KEY = 'sk-ant-test-4711-not-a-real-one';
const stack = new AsyncDisposableStack();
beforeAll(async () => {
  if (whyNoEngine() === undefined) await useWorkerImage(stack);
});
afterAll(() => stack.disposeAsync());

const toolCall = (command: string): string =>
  JSON.stringify({
    type: 'assistant',
    message: { content: [{ type: 'tool_use', name: 'Bash', input: { command } }] },
  });

testThatNeeds(whyNoEngine())(
  '[FL-13, FL-08] docker logs of a worker shows what it does, like hotcell fleet logs, and no key',
  async () => {
    const script = [
      ['say', toolCall('echo $ANTHROPIC_API_KEY\u001b[2J\nforged')],
      ['say', 'words on stdout'],
      ['wait', 'go'],
    ] as const;
    const agent = { output: 'stream-json' };
    const repository = stack.use(
      FleetRepository.make({ tasks: [toTask('A', 1, script)], config: { agent } }),
    );
    repository.writeAll({ '.env': `ANTHROPIC_API_KEY=${KEY}\n` });
    const command = stack.use(startFleet(repository, 'docker', ['kurukshetra', '--workers', '1']));
    await repository.untilAnnounced('A');
    const { container_name: name = '' } = repository.readState().workers['0'] ?? {};
    // With digits at its end where somebody else has that name.
    expect(name).toMatch(/^mahabharatha-worker-0(-[0-9a-f]{4})?$/);
    const logs = async (): Promise<string[]> => {
      const { stdout, stderr } = await engineApi().logs(name ?? '');
      expect(stderr).toBe('');
      return stdout.trimEnd().split('\n');
    };
    await waitFor('the agent is heard', async () => (await logs()).join('\n').includes('words on stdout'));
    const shown = await mahabharatha(repository, ['logs', '0']);
    const lines = await logs();
    expect(lines).toEqual(shown.stdout.trimEnd().split('\n'));
    for (const line of lines)
      expect(line).toMatch(/^\d\d:\d\d:\d\d worker 0  (info |warn |error) [\x20-\x7e]+$/);
    expect(lines[0]).toContain(name);
    expect(lines.filter((line) => /A (claim|execute) /.test(line)).length).toBeGreaterThan(2);
    expect(lines.join('\n')).toContain('tool=Bash about=echo [secret]');
    expect(lines.join('\n')).not.toContain(KEY);
    expect(lines.join('\n')).not.toContain('\u001b');

    repository.mark('go');
    const { code, stderr } = await command.ended;
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    await untilNothingIsLeft(repository, [command], 'docker');
  },
);
