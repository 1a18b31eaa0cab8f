import * as z from 'zod';

/** Answer of `GET /metrics` as JSON; Prometheus gets the same and more as text. */
export const MetricsReply = z.object({
  started_at: z.string().describe('ISO 8601'),
  uptime_seconds: z.number(),
  memory_bytes: z.int().describe('of the server itself'),
  runs: z.object({
    running: z.int(),
    waiting: z.int(),
    total: z.int(),
  }),
  sessions: z.object({
    open: z.int().describe('paused ones too'),
    paused: z.int(),
    created_total: z.int(),
    adopted_total: z.int().describe('taken over from an earlier life of the server'),
    ended_total: z.record(z.string(), z.int()).describe('by reason'),
  }),
  execs: z.object({
    running: z.int(),
    waiting: z.int().describe('for another command of their session'),
    ended_total: z.record(z.string(), z.int()).describe('by reason'),
    output_bytes_total: z.int(),
  }),
  uploads_total: z.int(),
  syncs_total: z.int(),
  egress_refused_total: z.int(),
});
export type MetricsReply = z.infer<typeof MetricsReply>;
