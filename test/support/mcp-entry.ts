import { readConfig } from '../../src/app/config/read-config.ts';
import { serveMcp } from '../../src/app/mcp/serve-mcp.ts';
import { makeLog } from '../../src/app/make-log.ts';
import { ScriptedWorkbenches } from '../../src/mcp/scripted-workbench.double.ts';

/**
 * The real door of stdio as a process of its own, in front of scripted sessions. Settings come from the environment. What
 * the sessions saw is told on stderr at the end.
 */
const { config } = readConfig({ env: process.env, cwd: '/', flags: {} });
const scripted = new ScriptedWorkbenches();
const parts = { workbenches: () => Promise.resolve(scripted), log: makeLog('warn') };

await serveMcp(config, parts, { stdin: process.stdin, stdout: process.stdout });
const opened = scripted.all.length;
const left = scripted.all.filter(({ closed }) => !closed).length;
process.stderr.write(`${JSON.stringify({ closed: scripted.closed, opened, left })}\n`);
