import { McpDoor } from '../../../src/mcp/door.ts';
import { addFixturesTo } from './fixtures.ts';

/** For `--import`: every server of the process that loads it has what the conformance suite calls. */
addFixturesTo(McpDoor.prototype);
