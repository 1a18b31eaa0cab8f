/** For tests: what the kernel would do, in the few instructions of classic BPF that our filters are made of. */
export function judge(program: Uint8Array, data: Uint32Array): number {
  const view = new DataView(program.buffer, program.byteOffset, program.byteLength);
  let accumulator = 0;
  for (let at = 0; at < program.length / 8; at++) {
    const [code, value] = [view.getUint16(at * 8, true), view.getUint32(at * 8 + 4, true)];
    const jump = (condition: boolean): void => {
      at += view.getUint8(at * 8 + (condition ? 2 : 3));
    };
    if (code === 0x20) accumulator = data[value / 4] ?? 0;
    else if (code === 0x54) accumulator = (accumulator & value) >>> 0;
    else if (code === 0x15) jump(accumulator === value);
    else if (code === 0x25) jump(accumulator > value);
    else if (code === 0x35) jump(accumulator >= value);
    else if (code === 0x45) jump((accumulator & value) !== 0);
    else if (code === 0x06) return value;
    else throw new Error(`unknown instruction ${code}`);
  }
  throw new Error('the filter has no end');
}
