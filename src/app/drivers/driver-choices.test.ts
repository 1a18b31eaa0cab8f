import { expect, test } from 'vitest';
import { parseFleetConfig } from '../../fleet/read-fleet-config.ts';
import { WORKER_DRIVERS } from './driver-choices.ts';

const parse = (text: string) => parseFleetConfig('config.yaml', text, WORKER_DRIVERS);

test('[FL-02] only drivers that make workers can be named', () => {
  for (const name of WORKER_DRIVERS)
    expect(parse(`workers: { driver: ${name} }`).config.workers.driver).toBe(name);
  for (const name of ['apple', 'podman', 'preload', 'subprocess'])
    expect(() => parse(`workers: { driver: ${name} }`)).toThrow(
      expect.objectContaining({
        code: 'CONFIG_INVALID',
        field: 'workers.driver',
        message: 'config.yaml: workers.driver: must be one of auto, docker, oci',
      }),
    );
});
