import { expect, test } from 'vitest';
import { toTask } from '../support/fleet-repository.ts';
import { API_KEY, AgentFleet, expectDone } from './agent-fleet.ts';
import { describeWays } from './agent-ways.ts';
import { bash, say } from './turns.ts';

describeWays(['oci', 'docker'], (way) => {
  test('[FL-08] with a key that only the gate has, the agent works and does not know it', async () => {
    await using fleet = await AgentFleet.open(way, {
      tasks: [toTask('A', 1)],
      // It is the gate that knows where the API is.
      env: { ANTHROPIC_BASE_URL: undefined },
    });
    fleet.configure({ credentials: { api_key: 'gate', api_host: fleet.api.host } });
    fleet.api.script('A', [
      bash('mkdir -p out; env >out/A.txt; cat /proc/*/environ >>out/A.txt; true'),
      say(),
    ]);
    expectDone(await fleet.run());
    expect(new Set(fleet.api.requests.map(({ apiKey }) => apiKey))).toEqual(new Set([API_KEY]));
    const seen = fleet.repository.git('show', `${fleet.repository.branch('staging')}:out/A.txt`);
    expect(seen).toContain(`ANTHROPIC_BASE_URL=http://${fleet.api.host}`);
    expect(seen).not.toContain(API_KEY);
    expect(await fleet.faults()).toEqual([]);
  });
});
