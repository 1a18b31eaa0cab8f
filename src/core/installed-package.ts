import * as z from 'zod';

export const InstalledPackage = z.strictObject({
  name: z.string(),
  version: z.string(),
  /** The host of the registry it came from. */
  from: z.string(),
  /** Named by the code itself; the others came along. */
  direct: z.boolean(),
});
export type InstalledPackage = z.infer<typeof InstalledPackage>;
