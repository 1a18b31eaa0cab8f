import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those of half a minute and more, so that nobody waits for one of them at the end of a tier. */
const LONGEST = [
  'test/contract/docker.test.ts',
  'test/contract/lasting.test.ts',
  'test/contract/oci.test.ts',
  'test/faults/docker-engine.test.ts',
  'test/faults/apple.test.ts',
  'test/faults/session-crash.test.ts',
  'test/faults/session-down.test.ts',
  'test/faults/session-stop.test.ts',
  'test/faults/crash.test.ts',
  'test/faults/fleet-commit.test.ts',
  'test/faults/fleet-crash.test.ts',
  'test/faults/fleet-kills.test.ts',
  'test/faults/mcp-kill.test.ts',
  'test/attacks/fleet-walls.test.ts',
  'test/attacks/fleet-credentials.test.ts',
  'test/e2e/mcp-run-code.test.ts',
  'test/e2e/mcp-clients.test.ts',
  'test/e2e/lifecycle.test.ts',
  'test/attacks/session-walls.test.ts',
  'test/e2e/mcp-conformance.test.ts',
  'test/e2e/mcp-inspector.test.ts',
  'test/e2e/sessions/setup.test.ts',
];

/** On a new machine nobody knows yet how long a file takes. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification): number => {
      const rank = LONGEST.indexOf(relative(this.ctx.config.root, moduleId));
      return rank === -1 ? LONGEST.length : rank;
    };
    const groupOf = ({ project }: TestSpecification): number => project.config.sequence.groupOrder;
    // oxlint-disable-next-line unicorn/no-array-sort -- It is not that of an array, and gives a new one.
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => groupOf(a) - groupOf(b) || rankOf(a) - rankOf(b));
  }
}
