import { describe, expect } from 'vitest';
import { mahabharatha, OCI, SUBPROCESS } from '../support/fleet-command.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';
import { whyNoOci } from '../support/fleet-ways.ts';
import { testThatNeeds } from '../support/needs.ts';

/** As Claude Code begins. */
const INIT = JSON.stringify({ type: 'system', subtype: 'init', claude_code_version: '9.9.9' });

describe.each([
  { name: 'oci', args: OCI, missing: whyNoOci },
  { name: 'subprocess', args: SUBPROCESS, missing: undefined },
])('an agent of another version, $name', ({ args, missing }) => {
  testThatNeeds(missing)('[FL-14] is told of when it says so itself, once, and does its work', async () => {
    const tasks = ['A', 'B'].map((id) => toTask(id, 1, [['say', INIT]]));
    using repository = FleetRepository.make({ tasks, config: { agent: { output: 'stream-json' } } });
    const { code, stderr } = await mahabharatha(repository, ['kurukshetra', ...args, '--workers', '2']);
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    expect(stderr.split('\n').filter((line) => line.includes('9.9.9'))).toEqual([
      expect.stringMatching(
        /^fleet: ! the agent, Claude Code, is of version 9\.9\.9; this release was tried with \d/,
      ),
    ]);
    expect(repository.events().filter((event) => event === 'agent_version')).toHaveLength(1);
  });
});
