import type { McpDoor } from '../../../src/mcp/door.ts';
import type { Served } from '../../../src/mcp/tool.ts';
import { addAnswerFixtures } from './answers.ts';
import { addPromptFixtures } from './prompts.ts';
import { addQuestionFixtures } from './questions.ts';
import { addResourceFixtures } from './resources.ts';
import { addRoundFixtures } from './rounds.ts';

/** Whatever this door serves from now on has the fixtures on it. */
export function addFixturesTo(door: Pick<McpDoor, 'equip'>): void {
  const { equip } = door;
  door.equip = function (served) {
    equip.call(this, served);
    addFixtures(served);
  };
}

/**
 * What the conformance suite of MCP calls by fixed names, because it cannot know the tools of a server. They are the only
 * ones that use what the protocol has deprecated.
 */
function addFixtures(served: Served): void {
  served.server.server.registerCapabilities({ logging: {}, resources: { subscribe: true } });
  addAnswerFixtures(served);
  addQuestionFixtures(served);
  addRoundFixtures(served);
  addResourceFixtures(served);
  addPromptFixtures(served);
}
