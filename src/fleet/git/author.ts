import { lineOf, type HostGit } from './host-git.ts';

export interface Author {
  readonly name: string;
  readonly email: string;
}

/** Whoever the repository says the user is; if nobody is named, the worker, or the fleet for commits that no worker makes. */
export async function findAuthor(git: HostGit, worker: number | undefined): Promise<Author> {
  const fallback =
    worker === undefined
      ? { name: 'Mahabharatha', email: 'fleet@mahabharatha.invalid' }
      : { name: `Mahabharatha worker ${worker}`, email: `worker-${worker}@mahabharatha.invalid` };
  return (await readUser(git)) ?? fallback;
}

async function readUser(git: HostGit): Promise<Author | undefined> {
  const name = await readSetting(git, 'user.name');
  const email = await readSetting(git, 'user.email');
  return name === '' || email === '' ? undefined : { name, email };
}

export function toAuthorVariables({ name, email }: Author): Record<string, string> {
  return {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
  };
}

async function readSetting(git: HostGit, key: string): Promise<string> {
  return lineOf((await git.attempt(['config', '--get', key])).stdout).trim();
}
