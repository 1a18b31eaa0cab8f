import type { RunReply } from '../wire/run-code.ts';

type Package = RunReply['packages'][number];

/** The whole reply for people and for models that see no structured content. What the code printed comes last. */
export function toRunText(reply: RunReply): string {
  const lines = [
    headline(reply),
    ...named('message', reply.message),
    ...named('hint', reply.hint),
    ...denialLines(reply),
    ...reply.warnings.map((warning) => `warning: ${warning}`),
    ...named('run_id', reply.run_id),
    ...named('session_id', reply.session_id ?? 'none: it was for this run only'),
    ...nextStep(reply),
    ...named('packages', reply.packages.map(packageText).join(', ')),
    ...named('installed now', reply.installed.map(packageText).join(', ')),
    ...named(
      'files changed',
      reply.filesChanged.map(({ path, sizeBytes }) => `${path} (${sizeBytes} bytes)`).join(', '),
    ),
    ...named('phases', pairs(reply.phases, ' ms')),
    ...named('limits', pairs(reply.limits ?? {})),
    ...named('cell', reply.cell),
    ...named('isolation', isolationText(reply)),
  ];
  return [...lines, ...streamText(reply, 'stdout'), ...streamText(reply, 'stderr')].join('\n');
}

function headline({ status, language, phase, exitCode, signal, durationMs }: RunReply): string {
  const parts = [
    `${language}: ${status}`,
    ...(status === 'running' ? [`phase ${phase}`] : []),
    ...(exitCode === undefined ? [] : [`exit code ${exitCode}`]),
    ...(signal === undefined ? [] : [`signal ${signal}`]),
    `${Math.round(durationMs)} ms`,
  ];
  return parts.join(' · ');
}

function denialLines({ denials, session_id: sessionId }: RunReply): string[] {
  const lines = denials.map(({ action, grant, permission }) =>
    grant === undefined
      ? `denied: ${action} (needs ${JSON.stringify(permission)})`
      : `denied: ${action}\n  to allow it, call ${grant.tool} with ${JSON.stringify(grant.arguments)}`,
  );
  if (denials.length === 0 || sessionId !== undefined) return lines;
  return [
    ...lines,
    '  to allow it, call create_session, then grant_permission with that session_id, then run_code with it',
  ];
}

function nextStep({ status, run_id: runId, session_id: sessionId }: RunReply): string[] {
  if (status !== 'running') return [];
  const where = JSON.stringify({ run_id: runId, session_id: sessionId });
  return [`It still runs. Call get_run with ${where} for the result, or cancel_run to end it.`];
}

function packageText({ name, version, from, direct }: Package): string {
  return `${name}@${version} from ${from}${direct ? '' : ' (came along)'}`;
}

function isolationText({ isolation }: RunReply): string | undefined {
  if (isolation === undefined) return undefined;
  return `${isolation.driver}, ${isolation.runtime} (${pairs(isolation.enforcement)})`;
}

function streamText(reply: RunReply, stream: 'stdout' | 'stderr'): string[] {
  const cut = reply[`${stream}CutBytes`];
  const note = cut === 0 ? '' : `, ${cut} of them left out`;
  const bytes = reply[`${stream}Bytes`];
  return bytes === 0 ? [`${stream}: empty`] : [`${stream} (${bytes} bytes${note}):`, reply[stream]];
}

function named(name: string, text: string | undefined): string[] {
  return text === undefined || text === '' ? [] : [`${name}: ${text}`];
}

function pairs(values: Readonly<Record<string, string | number>>, unit = ''): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} ${value}${unit}`)
    .join(', ');
}
