const MiB = 1024 * 1024;

/** After rounds of equal load: the first ones make what is kept for good, such as compiled code and buffers. */
const WARM_UP = 2;
const FEWEST_SAMPLES = 6;
/** The last third may have this much more than the first: where the collector of garbage happens to be is no growth. */
const RATIO = 1.15;
const SLACK_BYTES = 24 * MiB;
const SLACK_DESCRIPTORS = 24;
/** What is lost grows in every third; the heap takes once, in one step, what it then keeps and uses again. */
const SHARE_OF_A_THIRD = 0.2;

/** What a server had at rest. */
export interface Sample {
  readonly residentBytes: number;
  readonly descriptors: number;
}

export interface Growth {
  readonly first: Sample;
  readonly middle: Sample;
  readonly last: Sample;
  readonly rounds: number;
}

/** How much one server grew in its life; undefined if that was too short to tell. */
export function growthOf(life: readonly Sample[]): Growth | undefined {
  const samples = life.slice(WARM_UP);
  if (samples.length < FEWEST_SAMPLES) return undefined;
  const third = Math.floor(samples.length / 3);
  return {
    first: medianOf(samples.slice(0, third)),
    middle: medianOf(samples.slice(third, -third)),
    last: medianOf(samples.slice(-third)),
    rounds: life.length,
  };
}

/** In words; undefined when it is flat. */
export function describeGrowth({ first, middle, last, rounds }: Growth): string | undefined {
  const grew = [
    last.residentBytes > first.residentBytes * RATIO + SLACK_BYTES &&
    isSteady(first.residentBytes, middle.residentBytes, last.residentBytes)
      ? `from ${toMiB(first.residentBytes)} to ${toMiB(last.residentBytes)} MiB`
      : '',
    last.descriptors > first.descriptors + SLACK_DESCRIPTORS
      ? `from ${first.descriptors} to ${last.descriptors} descriptors`
      : '',
  ].filter((words) => words !== '');
  return grew.length === 0
    ? undefined
    : `one server grew in ${rounds} rounds of equal load ${grew.join(' and ')}`;
}

function isSteady(first: number, middle: number, last: number): boolean {
  const least = (last - first) * SHARE_OF_A_THIRD;
  return middle - first >= least && last - middle >= least;
}

export function toMiB(bytes: number): number {
  return Math.round(bytes / MiB);
}

function medianOf(samples: readonly Sample[]): Sample {
  const median = (values: number[]): number =>
    values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
  return {
    residentBytes: median(samples.map(({ residentBytes }) => residentBytes)),
    descriptors: median(samples.map(({ descriptors }) => descriptors)),
  };
}
