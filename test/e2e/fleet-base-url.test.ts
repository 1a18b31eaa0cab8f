import { hostname } from 'node:os';
import { expect } from 'vitest';
import { mahabharatha, OCI } from '../support/fleet-command.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';
import { whyNoOci } from '../support/fleet-ways.ts';
import { testThatNeeds } from '../support/needs.ts';

const HOST = `${hostname().toLowerCase()}:4711`;

testThatNeeds(whyNoOci)(
  '[FL-08] a company gateway at a private address is refused until it is permitted',
  async () => {
    const configOf = (allow: string[]) => ({
      agent: { command: 'node', args: ['agent.mjs'], env: { ANTHROPIC_BASE_URL: `http://${HOST}` } },
      network: { allow },
    });
    using repository = FleetRepository.make({ tasks: [toTask('A', 1)], config: configOf([]) });
    const run = (env: Record<string, string> = {}) =>
      mahabharatha(repository, ['kurukshetra', ...OCI], { env });
    const before = await run();
    expect(before).toMatchObject({ code: 2 });
    expect(before.stderr).toContain(`→ Add ${HOST} to network.allow in .mahabharatha/config.yaml.`);
    // What the first hint says is all that helps.
    const [, permitted = ''] =
      /HOTCELL_SESSIONS_EGRESS_PERMIT=(\S+) in the environment/.exec(before.stderr) ?? [];
    repository.writeConfig(configOf([HOST]));
    const listed = await run();
    expect(listed).toMatchObject({ code: 2 });
    expect(repository.hasState()).toBe(false);
    const { code, stderr } = await run({ HOTCELL_SESSIONS_EGRESS_PERMIT: permitted });
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  },
);
