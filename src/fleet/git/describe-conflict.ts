import { featureBranch } from '../names.ts';

export interface Conflict {
  readonly feature: string;
  /** The branch that did not merge. */
  readonly branch: string;
  readonly files: readonly string[];
}

const FILES_SHOWN = 20;

/** What a person does next, line by line. Commands are indented, so that they can be copied. */
export function describeConflict({ feature, branch, files }: Conflict): string[] {
  const staging = featureBranch(feature);
  const folder = `../resolve-${feature}`;
  const shown = files.slice(0, FILES_SHOWN).map((file) => `  ${toPrintable(file)}`);
  const more = files.length > FILES_SHOWN ? [`  and ${files.length - FILES_SHOWN} more`] : [];
  return [
    `${branch} does not merge into ${staging}. Both are as they were. In conflict:`,
    ...shown,
    ...more,
    'Merge it by hand, in the repository:',
    `  git worktree add ${folder} ${staging}`,
    `  cd ${folder}`,
    `  git merge --no-ff ${branch}`,
    'Mend the files, then:',
    '  git add --all && git commit --no-edit',
    '  cd - && git worktree remove --force ' + folder,
    `  hotcell fleet resume --feature ${feature}`,
  ];
}

/** SECURITY: names come from workers; none of them may speak to the terminal or look like more than one line. */
function toPrintable(name: string): string {
  return /^[\p{L}\p{N}\p{P}\p{S} ]+$/u.test(name)
    ? name
    : JSON.stringify(name).replaceAll(/[^\x20-\x7e]/g, '?');
}
