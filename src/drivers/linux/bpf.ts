/** What the kernel does with a call. */
export type Verdict =
  | { readonly kind: 'allow' }
  /** Fails with this error; 0 makes it look as if it had been done. */
  | { readonly kind: 'errno'; readonly errno: number }
  | { readonly kind: 'kill' }
  /** A process outside decides, and acts itself. */
  | { readonly kind: 'ask' };

/** A test of the lower 32 bits of an argument, after `mask`: one of `is`, or none of `not`. */
export type ArgumentTest = { readonly index: number; readonly mask?: number } & (
  { readonly is: readonly number[] } | { readonly not: readonly number[] }
);

export interface CallRule {
  readonly number: number;
  /** All must hold; otherwise `otherwise`. */
  readonly tests: readonly ArgumentTest[];
  readonly verdict: Verdict;
  readonly otherwise: Verdict;
}

export interface FilterPlan {
  readonly audit: number;
  readonly foreignBit: number | undefined;
  readonly rules: readonly CallRule[];
  readonly allowed: readonly number[];
  readonly otherwise: Verdict;
}

type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, value: number];

const LOAD = 0x20;
const AND = 0x54;
const JUMP_EQUAL = 0x15;
const JUMP_GREATER = 0x25;
const JUMP_GREATER_EQUAL = 0x35;
const JUMP_BITS = 0x45;
const RETURN = 0x06;

/** Offsets in `struct seccomp_data`; both architectures are little-endian. */
const NUMBER = 0;
const AUDIT = 4;
const lowerHalf = (index: number): number => 16 + 8 * index;

const KILL = 0x80000000;
const ASK = 0x7fc00000;
const ALLOW = 0x7fff0000;
const ERRNO = 0x00050000;

function answer(verdict: Verdict): Instruction {
  switch (verdict.kind) {
    case 'allow':
      return [RETURN, 0, 0, ALLOW];
    case 'kill':
      return [RETURN, 0, 0, KILL];
    case 'ask':
      return [RETURN, 0, 0, ASK];
    case 'errno':
      return [RETURN, 0, 0, ERRNO + verdict.errno];
    default:
      return verdict satisfies never;
  }
}

/** The program for seccomp(2), as an array of `struct sock_filter`. */
export function assembleFilter(plan: FilterPlan): Uint8Array {
  return encode([
    [LOAD, 0, 0, AUDIT],
    // SECURITY: the numbers below mean nothing in another calling convention.
    [JUMP_EQUAL, 1, 0, plan.audit],
    answer({ kind: 'kill' }),
    [LOAD, 0, 0, NUMBER],
    ...(plan.foreignBit === undefined
      ? []
      : [[JUMP_BITS, 0, 1, plan.foreignBit] as const, answer({ kind: 'kill' })]),
    ...plan.rules.flatMap(assembleRule),
    ...toRanges(plan.allowed).flatMap(assembleRange),
    answer(plan.otherwise),
  ]);
}

function assembleRule(rule: CallRule): Instruction[] {
  const block = [...rule.tests.flatMap((test) => assembleTest(test, rule.otherwise)), answer(rule.verdict)];
  return [[JUMP_EQUAL, 0, block.length, rule.number], ...block];
}

function assembleTest(test: ArgumentTest, otherwise: Verdict): Instruction[] {
  const load: Instruction[] = [[LOAD, 0, 0, lowerHalf(test.index)]];
  if (test.mask !== undefined) load.push([AND, 0, 0, test.mask]);
  if ('not' in test)
    return [...load, ...test.not.flatMap((value) => [[JUMP_EQUAL, 0, 1, value] as const, answer(otherwise)])];
  const { is } = test;
  return [
    ...load,
    ...is.map((value, index) => [JUMP_EQUAL, is.length - index, 0, value] as const),
    answer(otherwise),
  ];
}

function assembleRange([first, last]: readonly [number, number]): Instruction[] {
  return first === last
    ? [[JUMP_EQUAL, 0, 1, first], answer({ kind: 'allow' })]
    : [[JUMP_GREATER_EQUAL, 0, 2, first], [JUMP_GREATER, 1, 0, last], answer({ kind: 'allow' })];
}

function toRanges(numbers: readonly number[]): [number, number][] {
  const ranges: [number, number][] = [];
  for (const number of numbers.toSorted((one, other) => one - other)) {
    const last = ranges.at(-1);
    if (last !== undefined && number <= last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges;
}

function encode(program: readonly Instruction[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(program.length * 8));
  for (const [index, [code, whenTrue, whenFalse, value]] of program.entries()) {
    view.setUint16(index * 8, code, true);
    view.setUint8(index * 8 + 2, whenTrue);
    view.setUint8(index * 8 + 3, whenFalse);
    view.setUint32(index * 8 + 4, value, true);
  }
  return new Uint8Array(view.buffer);
}
