import type { Harm } from './fault.ts';

/** Everybody who reads events is cut off, as by a network that breaks. */
export const dropClients: Harm = async ({ streams }) => {
  for (const connection of streams) connection.response.destroy(new Error('cut off'));
};

/** Orchestrators die; their acts have them go on. */
export const killFleet: Harm = async ({ fleets }) => {
  await Promise.all([...fleets].filter(({ isRunning }) => isRunning).map((fleet) => fleet.kill('SIGKILL')));
};
