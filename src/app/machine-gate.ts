import { readFile } from 'node:fs/promises';
import type { Log } from '../core/log.ts';
import { caBundlePath } from '../egress/ca-bundle.ts';
import { EgressGate } from '../egress/gate.ts';
import { readPresets, type PresetTable } from '../egress/presets.ts';
import type { Config } from './config/config.ts';

/** The gate as this machine is set up: its registries, and whom it trusts. */
export interface MachineGate {
  get(): Promise<EgressGate>;
  presets(): Promise<PresetTable>;
  close(): Promise<void>;
}

/** npm and pip take a second to tell where they get packages from, so nobody asks them before it matters. */
export function openMachineGate(config: Config, log: Log): MachineGate {
  let asking: Promise<PresetTable> | undefined;
  let opening: Promise<EgressGate> | undefined;
  const presets = (): Promise<PresetTable> => (asking ??= readPresets({ env: process.env }));
  const open = async (): Promise<EgressGate> =>
    new EgressGate({
      presets: await presets(),
      caBundle: await readCaBundle(),
      log,
      ...config.sessions.egress,
    });
  return {
    presets,
    get: () => (opening ??= open()),
    close: async () => (await opening)?.close(),
  };
}

/** Whom this machine trusts. */
export async function readCaBundle(): Promise<Uint8Array | undefined> {
  const path = await caBundlePath(process.env);
  return path === undefined ? undefined : readFile(path);
}
