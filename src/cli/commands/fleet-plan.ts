import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';
import { Option, type Command } from 'commander';
import type { AskAgent } from '../../fleet/planning/ask-agent.ts';
import { messageOf } from '../../core/errors.ts';
import { usageError } from '../exit-codes.ts';
import { addAgentOptions, type AgentOptions } from '../fleet/agent-options.ts';
import type { CommandContext } from '../program.ts';
import { AgentProgress } from '../fleet/agent-progress.ts';
import type { Terminal } from '../terminal.ts';

const EXAMPLES = `
Examples:
  hotcell fleet plan login 'users sign in with a passkey'
  hotcell fleet plan login --from-issue issue.md
  gh issue view 7 | hotcell fleet plan login --from-issue -
  hotcell fleet plan login --template-only       write it yourself
  hotcell fleet plan login --approve             when you have read it and agree

The agent (\`agent\` in .mahabharatha/config.yaml) looks at the last commit of the repository, in a cell as workers have
them, and writes .gsd/specs/NAME/requirements.md as a draft. Only you approve it, with --approve or by changing its
line "Status: DRAFT" to "Status: APPROVED"; \`hotcell fleet design\` takes nothing else.`;

/** Written out, because help must not wait for the schemas. */
const TEMPLATES = ['minimal', 'default', 'detailed'] as const;

interface Options extends AgentOptions {
  readonly template: (typeof TEMPLATES)[number];
  readonly fromIssue?: string;
  readonly interactive: boolean;
  readonly templateOnly?: true;
  readonly approve?: true;
  readonly force?: true;
}

export function addFleetPlanCommand(parent: Command, { terminal, outcome }: CommandContext): void {
  const command = parent
    .command('plan')
    .description('write down what a feature should do, with the agent; approve it')
    .argument('[feature]', 'letters, digits, dot, - and _')
    .argument('[description...]', 'what it should do')
    .addOption(
      new Option('-t, --template <name>', 'which sections it has').choices(TEMPLATES).default('default'),
    )
    .option('--from-issue <file>', 'a file that says what it should do; - for stdin')
    .option('--no-interactive', 'ask nothing')
    .option('--template-only', 'without an agent: write the empty sections')
    .option('--approve', 'say that you agree to what is written')
    .option('--force', 'write it anew; the old one is kept as requirements.previous.md')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (named: string | undefined, words: string[], options: Options) => {
      const [{ openPlanning }, { readFleetEnvironment }] = await Promise.all([
        import('../../fleet/planning/open-planning.ts'),
        import('../../app/fleet/fleet-environment.ts'),
      ]);
      if (named === undefined && options.approve !== true)
        throw usageError('the feature has no name', "Write: hotcell fleet plan NAME 'what it should do'");
      const planning = openPlanning(process.cwd(), named, readFleetEnvironment().variables);
      const { root, feature } = planning;
      const { approveFeature, planFeature } = await import('../../fleet/planning/plan-feature.ts');
      using progress = new AgentProgress(terminal);
      let done;
      if (options.approve === true) done = await approveFeature(root, feature);
      else {
        const description = await readDescription(feature, words, options, terminal);
        const ask: AskAgent | undefined =
          options.templateOnly === true
            ? undefined
            : async (prompt) => {
                const { askAgent } = await import('../fleet/ask-agent.ts');
                return askAgent({ planning, options, terminal, outcome, progress }, prompt);
              };
        const { template, force = false } = options;
        done = await planFeature({ root, feature, description, template, ask, force });
      }
      progress.clear();
      const path = relative(root, done.path);
      if (options.json === true) {
        terminal.json({ feature, path, status: done.status });
        return;
      }
      terminal.line(`${terminal.paint.green('✓')} ${path} is ${done.status}`);
      const next =
        done.status === 'APPROVED'
          ? 'hotcell fleet design'
          : `Read and correct it, then: hotcell fleet plan ${feature} --approve`;
      terminal.note(`  → ${next}`);
    });
  addAgentOptions(command);
}

async function readDescription(
  feature: string,
  words: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<string> {
  const said = words.join(' ');
  const { fromIssue } = options;
  if (fromIssue !== undefined) {
    const issue = fromIssue === '-' ? await text(process.stdin) : await readIssue(fromIssue);
    return [said, issue].filter((part) => part !== '').join('\n\n');
  }
  const mayAsk = options.interactive && options.templateOnly !== true && process.stdin.isTTY;
  if (said !== '' || !mayAsk) return said;
  using questions = createInterface({ input: process.stdin, output: terminal.stderr });
  const what = await questions.question(`What should ${feature} do?\n> `);
  const done = await questions.question(
    'How will you see that it is done? (empty: leave it to the agent)\n> ',
  );
  return done.trim() === '' ? what : `${what}\n\nIt is done when: ${done}`;
}

async function readIssue(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw usageError(`cannot read ${file}: ${messageOf(error)}`, 'Name a file, or - for stdin.');
  }
}
