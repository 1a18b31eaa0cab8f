import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { HotcellError } from '../../core/errors.ts';
import { describeBegun } from '../agent/check-agent.ts';
import { collectCredentials, renewCredentials } from '../environment/collect-credentials.ts';
import { KnownSecrets } from '../environment/known-secrets.ts';
import { prepareAgent } from '../environment/prepare-agent.ts';
import type { FleetMachine, SiteHooks } from '../fleet-machine.ts';
import { findAuthor } from '../git/author.ts';
import { BaseStore } from '../git/base-store.ts';
import { HostGit } from '../git/host-git.ts';
import { LinkedGit } from '../git/linked-git.ts';
import { SealedGit } from '../git/sealed-git.ts';
import { hideFolder } from '../git/worktrees.ts';
import { fleetPaths } from '../names.ts';
import { readFleetConfig } from '../read-fleet-config.ts';
import { notePlanning } from '../state/planning-figures.ts';
import { toFleetWish, type AskedSite, type FleetHooks } from '../run/run-fleet.ts';
import { AgentRun } from '../worker/agent-run.ts';
import { describeTool } from '../worker/agent-watch.ts';
import { Place } from '../worker/place.ts';
import type { AgentReply } from './ask-agent.ts';

/** What an agent may write at most when it is asked for a text. */
const ANSWER_BYTES = 4 * 1024 * 1024;
/** No worker has this number. */
const PLANNER = 9998;

export interface Question {
  readonly root: string;
  readonly feature: string;
  readonly prompt: string;
  readonly wish: AskedSite;
  readonly signal: AbortSignal;
}

export interface AskHooks extends SiteHooks, Pick<FleetHooks, 'onNote'> {
  /** What the agent does, as often as it does something. */
  onWork(text: string): void;
}

/**
 * Asks the agent once, behind the same walls as a worker: a copy of the last commit, which is gone afterwards with whatever
 * the agent did to it. Only what it prints comes back.
 */
export async function askAgentOnce(
  machine: FleetMachine,
  { root, feature, prompt, wish, signal }: Question,
  hooks: AskHooks,
): Promise<AgentReply> {
  const git = await HostGit.open(root, machine.env);
  const paths = fleetPaths(git.root, feature);
  const { config } = await readFleetConfig(paths.config, machine.drivers);
  const sources = { ...machine, root };
  const credentials = await collectCredentials(config.credentials, sources);
  const readCredentials = () => renewCredentials(credentials, config.credentials, sources);
  const site = await machine.openSite(config, toFleetWish(wish, config), hooks);
  hooks.onProgress(`the agent is asked in mode ${site.mode} (${site.reason})`);
  // Two questions at once must not meet.
  const key = `planner-${randomBytes(4).toString('hex')}`;
  const branch = `mahabharatha/${feature}/${key}`;
  await hideFolder(paths.home);
  await hideFolder(join(paths.worktrees, '..'));
  const base = new BaseStore(git, join(paths.cells, key, 'base.git'));
  const parts = {
    git,
    feature,
    worker: PLANNER,
    branch,
    worktree: join(paths.worktrees, key),
    start: await git.run(['rev-parse', '--verify', 'HEAD^{commit}']),
    author: await findAuthor(git, undefined),
  };
  const placeGit =
    site.mode !== 'container'
      ? new LinkedGit(parts)
      : new SealedGit({ ...parts, base, folder: join(paths.cells, key, 'cell') });
  try {
    const { variables, warnings } = await prepareAgent(machine, { site, config, credentials, root });
    for (const warning of warnings) hooks.onNote(warning);
    await using place = await Place.open({
      site,
      config,
      git: placeGit,
      name: `mahabharatha-${key}`,
      owner: site.nextOwner(),
      inject: credentials.inject,
      secrets: new KnownSecrets(),
      variables,
    });
    await placeGit.settle(place.runGit);
    const noteVersion = (version = ''): void => {
      const warning = version === '' ? undefined : describeBegun(version, { site, agent: config.agent });
      if (warning !== undefined) hooks.onNote(warning);
    };
    const agent = new AgentRun({ paths, config, site, readCredentials });
    const { code, answer, words, stderr, problem, figures } = await agent.ask({
      place,
      prompt,
      variables: { MAHABHARATHA_FEATURE: feature },
      timeMs: config.workers.timeout_minutes * 60_000,
      keptBytes: ANSWER_BYTES,
      signal,
      listener: {
        onOutput: () => {},
        onEvent: (event, { turns }) => {
          if (event.kind === 'tool') hooks.onWork(`turn ${turns}: ${describeTool(event)}`);
          else if (event.kind === 'retry') hooks.onWork(event.text);
          else if (event.kind === 'begun') noteVersion(event.version);
        },
      },
    });
    if (figures !== undefined) notePlanning(paths, figures);
    if (problem === 'signed-out')
      throw new HotcellError('AGENT_SIGNED_OUT', `the agent could not sign in: ${words}`);
    return { code, stdout: answer, stderr };
  } finally {
    await placeGit.remove();
    await git.attempt(['update-ref', '-d', `refs/heads/${branch}`]);
    await rm(join(paths.cells, key), { recursive: true, force: true });
    await site.close();
  }
}
