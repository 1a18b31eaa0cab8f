import type { Harm } from './fault.ts';

/** Whoever reads events or sits at a terminal is cut off, as by a network that breaks. */
export const dropClients: Harm = async ({ wires }) => {
  for (const wire of wires) wire.cut();
};

/** Orchestrators die; their acts have them go on. */
export const killFleet: Harm = async ({ fleets }) => {
  await Promise.all([...fleets].filter(({ isRunning }) => isRunning).map((fleet) => fleet.kill('SIGKILL')));
};
