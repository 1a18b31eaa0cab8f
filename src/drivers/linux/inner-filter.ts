import { assembleFilter, type ArgumentTest, type CallRule, type FilterPlan, type Verdict } from './bpf.ts';
import type { SeccompProfile, SeccompRule } from './seccomp.ts';
import type { SyscallTable } from './syscall-numbers.ts';

/** What makes walls around a run, and no program of a cell may call. */
const WALL_CALLS = ['mount', 'sethostname', 'setns', 'umount2', 'unshare'];

/** The profile of a cell whose helpers make walls inside it; each run gets `toInnerFilter` of the same profile on top. */
export function toOuterProfile(profile: SeccompProfile): SeccompProfile {
  const rest = profile.syscalls.filter(({ names }) => !names.includes('clone'));
  return {
    ...profile,
    syscalls: [...rest, { names: ['clone', ...WALL_CALLS], action: 'SCMP_ACT_ALLOW' }],
  };
}

/** A profile as the program that seccomp(2) takes: what a runtime makes of it, for whoever installs it without one. */
export function toInnerFilter(profile: SeccompProfile, table: SyscallTable): Uint8Array {
  return assembleFilter(toFilterPlan(profile, table));
}

function toFilterPlan(profile: SeccompProfile, table: SyscallTable): FilterPlan {
  const otherwise: Verdict = { kind: 'errno', errno: profile.defaultErrnoRet };
  const allowed: number[] = [];
  const rules = new Map<number, CallRule>();
  for (const rule of profile.syscalls) {
    const verdict = toVerdict(rule);
    for (const number of rule.names.flatMap((name) => table.numbers.get(name) ?? [])) {
      if (rule.args === undefined && verdict.kind === 'allow') allowed.push(number);
      else rules.set(number, merge(rules.get(number), { number, tests: toTests(rule), verdict, otherwise }));
    }
  }
  const { audit, foreignBit } = table;
  return { audit, foreignBit, rules: [...rules.values()], allowed, otherwise };
}

function toVerdict({ action, errnoRet }: SeccompRule): Verdict {
  if (action === 'SCMP_ACT_ALLOW') return { kind: 'allow' };
  if (action === 'SCMP_ACT_ERRNO' && errnoRet !== undefined) return { kind: 'errno', errno: errnoRet };
  throw new RangeError(`no filter is known for ${action}`);
}

function toTests({ args = [] }: SeccompRule): ArgumentTest[] {
  return args.map(({ index, value, valueTwo, op }) => {
    if (op === 'SCMP_CMP_EQ') return { index, is: [value] };
    if (op === 'SCMP_CMP_MASKED_EQ' && valueTwo !== undefined) return { index, mask: value, is: [valueTwo] };
    throw new RangeError(`no filter is known for ${op}`);
  });
}

/** Rules for the same call are alternatives: of the same argument, so that they are one test of several values. */
function merge(before: CallRule | undefined, rule: CallRule): CallRule {
  if (before === undefined) return rule;
  const [first, ...others] = before.tests;
  const [next, ...more] = rule.tests;
  const isMergeable =
    others.length + more.length === 0 && isValues(first) && isValues(next) && first.index === next.index;
  if (!isMergeable) throw new RangeError('alternatives of different arguments');
  return { ...rule, tests: [{ index: next.index, is: [...first.is, ...next.is] }] };
}

function isValues(test: ArgumentTest | undefined): test is { index: number; is: readonly number[] } {
  return test !== undefined && 'is' in test && test.mask === undefined;
}
