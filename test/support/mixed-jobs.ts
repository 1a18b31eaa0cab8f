/** A request and what its answer must hold. */
export interface Job {
  readonly language: string;
  readonly body: { readonly code: string; readonly timeout_ms?: number };
  readonly expected: object;
}

const PLAIN: readonly ((number: number) => Job)[] = [
  (number) => ({
    language: 'python',
    body: { code: `print(${number})` },
    expected: { stdout: `${number}\n`, exit_code: 0 },
  }),
  (number) => ({
    language: 'ruby',
    body: { code: `puts ${number}` },
    expected: { stdout: `${number}\n`, exit_code: 0 },
  }),
  (number) => ({
    language: 'javascript',
    body: { code: `console.log(${number})` },
    expected: { stdout: `${number}\n`, exit_code: 0 },
  }),
  (number) => ({
    language: 'typescript',
    body: { code: `console.log(${number} as number)` },
    expected: { stdout: `${number}\n`, exit_code: 0 },
  }),
  (number) => ({
    language: 'bash',
    body: { code: `echo ${number}; exit ${number % 100}` },
    expected: { stdout: `${number}\n`, exit_code: number % 100 },
  }),
];

function hostile(marker: string): readonly Job[] {
  return [
    {
      language: 'bash',
      body: { code: ':(){ :|:& };:; while :; do :; done', timeout_ms: 300 },
      expected: { exit_code: 124 },
    },
    {
      language: 'python',
      body: { code: 'x = bytearray(400 << 20)' },
      expected: { exit_code: 137, receipt: { limit_hit: 'memory' } },
    },
    {
      language: 'bash',
      body: { code: 'yes' },
      expected: { exit_code: 137, receipt: { limit_hit: 'output' } },
    },
    { language: 'javascript', body: { code: 'for (;;);', timeout_ms: 200 }, expected: { exit_code: 124 } },
    {
      language: 'bash',
      body: { code: `(setsid sleep ${marker} &); echo left` },
      expected: { stdout: 'left\n', exit_code: 0 },
    },
  ];
}

/** All languages in turn, every tenth program hostile; whatever one leaves running has the marker as argument. */
export function makeJobs(marker: string): (number: number) => Job {
  const attacks = hostile(marker);
  return (number) => {
    const attack = number % 10 === 9 ? attacks[Math.floor(number / 10) % attacks.length] : undefined;
    const job = attack ?? PLAIN[number % PLAIN.length]?.(number);
    if (job === undefined) throw new RangeError('there is no such job');
    return job;
  };
}
