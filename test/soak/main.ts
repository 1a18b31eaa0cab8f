import { parseArgs } from 'node:util';
import { describeCounts, soak, type Verdict } from './soak.ts';

const HELP = `npm run soak -- --minutes M --seed S [--driver oci|docker] [--rounds N]

Chaos with a ledger: runs in all languages, sessions with streams and terminals, run_code, a fleet and hostile programs, all at
once, while servers, cells, helpers and engines are killed, frozen and left without disk. Whatever was acknowledged is
compared after each round; nothing may be lost, nothing orphaned, and no server may grow.

  --minutes M   ends after the round that is under way then (default 10)
  --seed S      a whole number; the same one gives the same plan (default: any, told at the start)
  --driver D    oci (default), or docker with an engine of its own
  --rounds N    ends after so many rounds, if the minutes are not over before

Needs root. Prints one line a minute and a verdict. Exit code 0: clean. 1: something is wrong; its folders are kept. 2: this
command line is.
`;

const DEFAULT_MINUTES = 10;
const LONGEST_SEED = 2 ** 32;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string' },
      seed: { type: 'string' },
      driver: { type: 'string', default: 'oci' },
      rounds: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const { driver } = values;
  if (driver !== 'oci' && driver !== 'docker')
    throw new TypeError(`--driver is oci or docker, not ${driver}`);
  if (process.geteuid?.() !== 0) throw new TypeError('a soak mounts and kills: run it as root');
  const seed = toNumber('seed', values.seed) ?? Math.floor(Math.random() * LONGEST_SEED);
  const rounds = toNumber('rounds', values.rounds);
  const minutes = toNumber('minutes', values.minutes) ?? DEFAULT_MINUTES;
  const tell = (line: string): void => void process.stdout.write(`${line}\n`);
  tell(`soak on ${driver}, seed ${seed}`);
  const interrupt = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupt.abort());
  const options = {
    seed,
    driver,
    minutes,
    tell,
    signal: interrupt.signal,
    ...(rounds === undefined ? {} : { rounds }),
  } as const;
  const verdict = await soak(options);
  tell(describeVerdict(verdict, seed));
  return verdict.wrong.length === 0 ? 0 : 1;
}

function toNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value < 0)
    throw new TypeError(`--${name} is a number, not '${text}'`);
  return value;
}

function describeVerdict(verdict: Verdict, seed: number): string {
  const { wrong, rounds, acts, faults, excused, acknowledged, servers, memory, kept } = verdict;
  const flat = memory.map(([first, last]) => `${first} to ${last} MiB`).join(', ');
  const [first] = wrong;
  return [
    ...wrong.map(({ round, where, words }) => `wrong in round ${round} (${where}): ${words}`),
    ...(first === undefined ? [] : [`at the first of these the server had said last:\n${first.log}`]),
    ...(kept === undefined ? [] : [`its log and its data are in ${kept}`]),
    `${rounds} rounds; acts ${describeCounts(acts)}, ${excused} of them excused by a fault; faults ${describeCounts(faults)}`,
    `${acknowledged} things acknowledged; ${servers} servers; memory of those that lived long: ${flat || 'none did'}`,
    `verdict for seed ${seed}: ${wrong.length === 0 ? 'clean' : `${wrong.length} things are wrong`}`,
  ].join('\n');
}

try {
  const code = await main();
  // Acts that hang must not keep it.
  process.exit(code);
} catch (error) {
  if (!(error instanceof TypeError)) throw error;
  process.stderr.write(`soak: ${error.message}\n  → npm run soak -- --help\n`);
  process.exitCode = 2;
}
