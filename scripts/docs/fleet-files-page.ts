import * as z from 'zod';
import { FleetConfig } from '../../src/fleet/fleet-config.ts';
import { FleetState } from '../../src/fleet/fleet-state.ts';
import { TaskGraph } from '../../src/fleet/task-graph.ts';
import { page, table } from './markdown.ts';
import { rowsOf } from './schema-rows.ts';

/** The files of a fleet, field by field. */
export function fleetFilesPage(): string {
  const fields = (schema: z.ZodType): string =>
    table(['Key', 'Type', 'Meaning'], rowsOf(z.toJSONSchema(schema, { io: 'input' }), ''));
  return page(
    'Files of a fleet',
    ['src/fleet/fleet-config.ts', 'src/fleet/task-graph.ts', 'src/fleet/fleet-state.ts'],
    'What each is for is in [fleet.md](fleet.md). Keys that are not listed are kept and mean nothing here; those of ' +
      '`config.yaml` are named at the start.',
    '## `.mahabharatha/config.yaml`',
    fields(FleetConfig),
    '## `task-graph.json`',
    'Looked for as `.gsd/specs/<feature>/task-graph.json`, below `.gsd/tasks`, in the root, and then anywhere below `.gsd`.',
    fields(TaskGraph),
    '## `.mahabharatha/state/<feature>.json`',
    'Below `tasks`, `workers` and `levels` there is an entry for each, by its id or number.',
    fields(FleetState),
  );
}
