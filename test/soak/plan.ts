import { Deck, below, makeDice } from './dice.ts';

/** What is done, and how often it comes in one deck. */
const ACTS = {
  run: 8,
  burst: 2,
  'dropped-run': 2,
  command: 4,
  files: 4,
  background: 3,
  stream: 3,
  terminal: 2,
  pause: 1,
  'hostile-command': 2,
  'delete-session': 2,
  'run-code': 4,
  fleet: 1,
} as const;
export type ActKind = keyof typeof ACTS;

/** After these the server is another process. */
const ENDS_OF_SERVER = { 'kill-server': 3, 'stop-server': 1 } as const;
const ANYWHERE = { 'freeze-server': 1, 'drop-clients': 2, 'full-disk': 1, 'kill-fleet': 1 } as const;
const OF_DRIVER = {
  oci: { 'kill-init': 2, 'kill-runtime': 2, 'kill-keeper': 1, 'kill-session': 1, 'freeze-cell': 1 },
  docker: { 'kill-engine': 2, 'freeze-engine': 1, 'kill-container': 2 },
} as const;

export type SoakDriver = keyof typeof OF_DRIVER;
export type FaultKind =
  | keyof typeof ENDS_OF_SERVER
  | keyof typeof ANYWHERE
  | keyof (typeof OF_DRIVER)['oci']
  | keyof (typeof OF_DRIVER)['docker'];

/** What belongs to one lane is done one after the other, and the lanes side by side: nobody else has a lane's sessions. */
export const LANES = 4;

export interface Act {
  readonly kind: ActKind;
  /** Of all acts of the plan. */
  readonly number: number;
  readonly lane: number;
  /** From 0 to 1: what it chooses by. */
  readonly dice: number;
}

export interface Fault {
  readonly kind: FaultKind;
  /** So many acts of the round are over when it happens: the moment is one of the plan, however slow the machine is. */
  readonly after: number;
  /** So much later, to come amid the acts and not only between them. */
  readonly delayMs: number;
  readonly dice: number;
}

export interface Round {
  readonly number: number;
  readonly acts: readonly Act[];
  readonly faults: readonly Fault[];
}

/** Rounds in which servers end, and after them ever longer ones in which one server must not grow. */
const STORMY_ROUNDS = 4;
const FIRST_CALM_ROUNDS = 8;
const MOST_CALM_ROUNDS = 64;

const FEWEST_ACTS = 8;
const MOST_ACTS = 12;
const LONGEST_DELAY_MS = 400;

export function actKinds(): readonly ActKind[] {
  return Object.keys(ACTS) as ActKind[];
}

export function faultKinds(driver: SoakDriver): readonly FaultKind[] {
  return Object.keys({ ...ENDS_OF_SERVER, ...ANYWHERE, ...OF_DRIVER[driver] }) as FaultKind[];
}

/** The rounds of a seed, without an end: a longer soak begins as a shorter one does. */
export function* makePlan(seed: number, driver: SoakDriver): Generator<Round, never> {
  const dice = makeDice(seed);
  const acts = new Deck(entriesOf(ACTS), dice);
  const ends = new Deck(entriesOf<FaultKind>(ENDS_OF_SERVER), dice);
  const others = new Deck(entriesOf<FaultKind>({ ...ANYWHERE, ...OF_DRIVER[driver] }), dice);
  let actNumber = 0;
  for (let number = 0; ; number++) {
    const count = FEWEST_ACTS + below(dice, MOST_ACTS - FEWEST_ACTS + 1);
    const toAct = (): Act => ({
      kind: acts.draw(),
      number: actNumber++,
      lane: below(dice, LANES),
      dice: dice(),
    });
    const toFault = (deck: Deck<FaultKind>): Fault => ({
      kind: deck.draw(),
      after: below(dice, count),
      delayMs: below(dice, LONGEST_DELAY_MS),
      dice: dice(),
    });
    const drawn = Array.from({ length: count }, toAct);
    const faults = isStormy(number) ? [toFault(ends)] : [toFault(others)];
    if (dice() < 0.5) faults.push(toFault(others));
    yield { number, acts: drawn, faults: faults.toSorted((one, other) => one.after - other.after) };
  }
}

/** Is this a round in which the server may end? */
export function isStormy(round: number): boolean {
  let [begin, calm] = [0, FIRST_CALM_ROUNDS];
  while (round >= begin + STORMY_ROUNDS + calm) {
    begin += STORMY_ROUNDS + calm;
    calm = Math.min(2 * calm, MOST_CALM_ROUNDS);
  }
  return round < begin + STORMY_ROUNDS;
}

/** The first rounds of a plan. */
export function firstRounds(seed: number, driver: SoakDriver, count: number): Round[] {
  const plan = makePlan(seed, driver);
  return Array.from({ length: count }, () => plan.next().value);
}

function entriesOf<Kind extends string>(counts: Readonly<Partial<Record<Kind, number>>>): [Kind, number][] {
  return Object.entries(counts) as [Kind, number][];
}
