import { join, relative } from 'node:path';
import { HotcellError } from '../../core/errors.ts';
import { fleetPaths } from '../names.ts';
import { askFor, type AskAgent } from './ask-agent.ts';
import { readText, replaceFile } from './keep-file.ts';
import {
  approve,
  findGaps,
  statusOf,
  toDraft,
  toPlanPrompt,
  toTemplate,
  type Template,
} from './requirements.ts';

const REQUIREMENTS = 'requirements.md';

export interface Planning {
  readonly root: string;
  readonly feature: string;
  readonly description: string;
  readonly template: Template;
  /** Without it the template is all there is. */
  readonly ask: AskAgent | undefined;
  /** Replaces what is there; that is kept beside it. */
  readonly force: boolean;
}

export interface PlannedFeature {
  readonly path: string;
  readonly status: string;
}

function requirementsPath(root: string, feature: string): string {
  return join(fleetPaths(root, feature).specs, REQUIREMENTS);
}

/** Writes down what is wanted, as a draft. Nothing is written unless all of it is there. */
export async function planFeature(planning: Planning): Promise<PlannedFeature> {
  const { root, feature, description, template, ask, force } = planning;
  const path = requirementsPath(root, feature);
  const before = await readText(path);
  if (before !== undefined && !force) throw alreadyThere(planning, path, statusOf(before) ?? 'unknown');
  const document =
    ask === undefined ? toTemplate(feature, template, description) : await write(planning, ask);
  if (before !== undefined) await replaceFile(root, join(path, '../requirements.previous.md'), before);
  await replaceFile(root, path, document);
  await chooseFeature(root, feature);
  return { path, status: 'DRAFT' };
}

async function write({ feature, template, description }: Planning, ask: AskAgent): Promise<string> {
  if (description.trim() === '') {
    throw new HotcellError('INVALID_REQUEST', 'nobody has said what is wanted', {
      hint: `Say it: hotcell fleet plan ${feature} 'what it should do', or --from-issue FILE, or --template-only to write it yourself.`,
    });
  }
  const document = toDraft(await askFor(ask, toPlanPrompt(feature, template, description)), feature);
  const gaps = findGaps(document, template);
  if (gaps.length === 0) return document;
  throw new HotcellError('AGENT_FAILED', `what the agent has written will not do: ${gaps.join('; ')}`, {
    hint: 'Try again, or write it yourself: --template-only',
  });
}

/** The feature that commands mean from now on. */
async function chooseFeature(root: string, feature: string): Promise<void> {
  await replaceFile(root, join(root, '.gsd/.current-feature'), `${feature}\n`);
}

export async function approveFeature(root: string, feature: string): Promise<PlannedFeature> {
  const path = requirementsPath(root, feature);
  const document = await requireRequirements(root, feature);
  if (statusOf(document) !== 'APPROVED') await replaceFile(root, path, approve(document));
  await chooseFeature(root, feature);
  return { path, status: 'APPROVED' };
}

/** The requirements, if a person has agreed to them. */
export async function requireApproved(root: string, feature: string): Promise<string> {
  const document = await requireRequirements(root, feature);
  const status = statusOf(document);
  if (status === 'APPROVED') return document;
  const where = relative(root, requirementsPath(root, feature));
  throw new HotcellError(
    'INVALID_REQUEST',
    `${where} is not approved; its status is ${status ?? 'not there'}`,
    {
      hint: `Read it, correct it, and then: hotcell fleet plan ${feature} --approve`,
    },
  );
}

async function requireRequirements(root: string, feature: string): Promise<string> {
  const path = requirementsPath(root, feature);
  const document = await readText(path);
  if (document !== undefined) return document;
  throw new HotcellError('INVALID_REQUEST', `there is no ${relative(root, path)}`, {
    hint: `Have it written: hotcell fleet plan ${feature} 'what it should do'`,
  });
}

function alreadyThere({ root, feature }: Planning, path: string, status: string): HotcellError {
  return new HotcellError('INVALID_REQUEST', `${relative(root, path)} is there already, ${status}`, {
    hint: `Approve it (hotcell fleet plan ${feature} --approve), or have it written anew: --force`,
  });
}
