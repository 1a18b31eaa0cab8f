import type { Served } from '../tool.ts';
import { addAnswerFixtures } from './answers.ts';
import { addPromptFixtures } from './prompts.ts';
import { addQuestionFixtures } from './questions.ts';
import { addResourceFixtures } from './resources.ts';
import { addRoundFixtures } from './rounds.ts';

/**
 * What the conformance suite of MCP calls by fixed names, because it cannot know the tools of a server.
 * SECURITY: they are for tests only, and they are the only ones that use what the protocol has deprecated.
 */
export function addConformanceFixtures(served: Served): void {
  served.server.server.registerCapabilities({ logging: {}, resources: { subscribe: true } });
  addAnswerFixtures(served);
  addQuestionFixtures(served);
  addRoundFixtures(served);
  addResourceFixtures(served);
  addPromptFixtures(served);
}
