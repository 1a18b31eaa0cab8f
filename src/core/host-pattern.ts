import * as z from 'zod';

export const EGRESS_PRESETS = ['npm', 'pypi', 'github'] as const;

const HOST =
  /^(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?(?::\d{1,5})?$/i;

/** A preset, a host name, or `*.` and a name for everything below it; with `:port` where it is neither 80 nor 443. */
export const HostPattern = z
  .string()
  .max(260)
  .refine((text) => EGRESS_PRESETS.some((preset) => preset === text) || HOST.test(text), {
    message: `must be a host name such as example.org or *.example.org, or one of ${EGRESS_PRESETS.join(', ')}`,
  });
