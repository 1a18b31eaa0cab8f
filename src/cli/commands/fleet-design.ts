import { relative, resolve } from 'node:path';
import { InvalidArgumentError, type Command } from 'commander';
import type { DesignedFeature } from '../../fleet/planning/design-feature.ts';
import type { OpenPlanning } from '../../fleet/planning/open-planning.ts';
import { usageError } from '../exit-codes.ts';
import { addAgentOptions, type AgentOptions } from '../fleet/agent-options.ts';
import { oneLine } from '../../lib/one-line.ts';
import type { CommandContext } from '../program.ts';
import { AgentProgress } from '../fleet/agent-progress.ts';
import { toPrintable } from '../../lib/printable.ts';

const EXAMPLES = `
Examples:
  hotcell fleet design
  hotcell fleet design --feature login --max-task-minutes 20
  hotcell fleet design --validate-only           check the graph that is there
  hotcell fleet design --validate-only --task-graph other.json

The agent cuts the approved requirements into tasks and writes them down as .gsd/specs/FEATURE/task-graph.json. A graph
that is not valid is not taken: the agent is told all that is wrong and asked again, twice at most. What was refused
last is kept beside it as task-graph.rejected.json. Next: \`hotcell fleet run --dry-run\`.

Exit codes: 0 there is a valid graph, 1 there is none, 2 usage.`;

const LONGEST_PROBLEM = 300;

interface Options extends AgentOptions {
  readonly feature?: string;
  readonly taskGraph?: string;
  readonly validateOnly?: true;
  readonly maxTaskMinutes: number;
  readonly minTaskMinutes: number;
  readonly force?: true;
}

/** Without rounds where no agent was asked. */
type Designed = Omit<DesignedFeature, 'rounds'> & Partial<DesignedFeature>;

export function addFleetDesignCommand(parent: Command, context: CommandContext): void {
  const { terminal } = context;
  const command = parent
    .command('design')
    .description('cut an approved feature into a graph of tasks, with the agent; check one')
    .option('-f, --feature <name>', 'the feature; the current one unless given')
    .option('--validate-only', 'check the graph that is there, and ask no agent')
    .option('-g, --task-graph <file>', 'with --validate-only: the graph; found by itself unless given')
    .option('--max-task-minutes <number>', 'longest task', toMinutes, 30)
    .option('--min-task-minutes <number>', 'shortest task', toMinutes, 5)
    .option('--force', 'replace the graph that is there')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: Options) => {
      if (options.minTaskMinutes > options.maxTaskMinutes)
        throw usageError('--min-task-minutes is more than --max-task-minutes', 'Turn them round.');
      const [{ openPlanning }, { readFleetEnvironment }] = await Promise.all([
        import('../../fleet/planning/open-planning.ts'),
        import('../../app/fleet/fleet-environment.ts'),
      ]);
      const planning = openPlanning(process.cwd(), options.feature, readFleetEnvironment().variables);
      const { graph, path, warnings, rounds } =
        options.validateOnly === true
          ? await validate(planning, options)
          : await design(planning, options, context);
      const file = relative(planning.root, path);
      const levels = new Set(graph.tasks.map(({ level }) => level)).size;
      if (options.json === true) {
        const { feature } = planning;
        terminal.json({
          feature,
          path: file,
          tasks: graph.tasks.length,
          levels,
          rounds: rounds ?? 0,
          warnings,
        });
        return;
      }
      for (const warning of warnings) terminal.note(`fleet: ${toPrintable(warning)}`);
      const count = graph.tasks.length === 1 ? '1 task' : `${graph.tasks.length} tasks`;
      terminal.line(
        `${terminal.paint.green('✓')} ${file} is valid: ${count} in ${levels} level${levels === 1 ? '' : 's'}`,
      );
      terminal.note('  → hotcell fleet run --dry-run');
    });
  addAgentOptions(command);
}

async function validate({ root, feature }: OpenPlanning, options: Options): Promise<Designed> {
  const [{ readGraph }, { findOddTasks }] = await Promise.all([
    import('../../fleet/graph/read-graph.ts'),
    import('../../fleet/planning/design-feature.ts'),
  ]);
  const named = options.taskGraph === undefined ? undefined : resolve(options.taskGraph);
  const { graph, path, warnings } = await readGraph(root, feature, named);
  return { graph, path, warnings: [...warnings, ...findOddTasks(graph, toLimits(options))] };
}

async function design(planning: OpenPlanning, options: Options, context: CommandContext): Promise<Designed> {
  const { terminal, outcome } = context;
  const [{ designFeature }, { askAgent }] = await Promise.all([
    import('../../fleet/planning/design-feature.ts'),
    import('../fleet/ask-agent.ts'),
  ]);
  using progress = new AgentProgress(terminal);
  const { root, feature } = planning;
  return await designFeature({
    root,
    feature,
    files: await planning.listFiles(),
    minutes: toLimits(options),
    ask: (prompt) => askAgent({ planning, options, terminal, outcome, progress }, prompt),
    force: options.force === true,
    onProgress: (text) => progress.show(text),
    // They stay to be read while the agent is asked again.
    onProblem: (text) => {
      progress.clear();
      terminal.note(`fleet:   ${oneLine(text, LONGEST_PROBLEM)}`);
    },
  });
}

function toLimits({ minTaskMinutes, maxTaskMinutes }: Options): { least: number; most: number } {
  return { least: minTaskMinutes, most: maxTaskMinutes };
}

function toMinutes(text: string): number {
  const minutes = Number(text);
  if (!(minutes > 0 && minutes <= 120)) throw new InvalidArgumentError('It must be a number up to 120.');
  return minutes;
}
