import * as z from 'zod';

const Input = {
  description: z.string().optional(),
  isRequired: z.boolean().optional(),
  isSecret: z.boolean().optional(),
  format: z.enum(['string', 'number', 'boolean', 'filepath']).optional(),
  default: z.string().optional(),
  placeholder: z.string().optional(),
  choices: z.array(z.string()).optional(),
  value: z.string().optional(),
};

/** The part of the registry's schema of 2025-12-11 that our server.json uses; anything else in it is a mistake. */
export const ServerJson = z.strictObject({
  $schema: z.literal('https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'),
  name: z
    .string()
    .min(3)
    .max(200)
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
  title: z.string().min(1).max(100).optional(),
  description: z.string().min(1).max(100),
  version: z
    .string()
    .max(255)
    .regex(/^\d+\.\d+\.\d+(-[\w.]+)?$/),
  packages: z
    .array(
      z.strictObject({
        registryType: z.literal('npm'),
        identifier: z.string().min(1),
        version: z.string().regex(/^\d+\.\d+\.\d+(-[\w.]+)?$/),
        runtimeHint: z.literal('npx'),
        transport: z.strictObject({ type: z.literal('stdio') }),
        packageArguments: z.array(z.strictObject({ type: z.literal('positional'), value: z.string() })),
        environmentVariables: z.array(z.strictObject({ name: z.string().min(1), ...Input })),
      }),
    )
    .min(1),
});
