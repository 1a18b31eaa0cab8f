import { HotcellError } from '../../core/errors.ts';

const TEMPLATES = ['minimal', 'default', 'detailed'] as const;
export type Template = (typeof TEMPLATES)[number];

interface Section {
  readonly title: string;
  /** What belongs into it, for whoever writes it. */
  readonly about: string;
}

const WANTED: Section = { title: 'Problem', about: 'who needs this, and what goes wrong without it' };
const FUNCTIONS: Section = {
  title: 'Functional requirements',
  about: 'what it does, numbered FR-001, FR-002 and so on, each of them checkable',
};
const ACCEPTANCE: Section = {
  title: 'Acceptance criteria',
  about: 'what has to be seen, and by which command, before it counts as done',
};
const SCOPE: Section = { title: 'Scope', about: 'what belongs to it, and what expressly does not' };
const QUESTIONS: Section = {
  title: 'Open questions',
  about: 'what a person has to decide; none is an answer',
};

const SECTIONS: Readonly<Record<Template, readonly Section[]>> = {
  minimal: [WANTED, FUNCTIONS, ACCEPTANCE],
  default: [WANTED, SCOPE, FUNCTIONS, ACCEPTANCE, QUESTIONS],
  detailed: [
    WANTED,
    SCOPE,
    FUNCTIONS,
    { title: 'Other requirements', about: 'speed, size, security, compatibility, as far as they matter' },
    { title: 'Interfaces', about: 'commands, functions, routes, formats and files that others will use' },
    { title: 'Risks', about: 'what could go wrong, and what would be done then' },
    ACCEPTANCE,
    QUESTIONS,
  ],
};

/** Stands where a person or an agent has still to write. */
const PLACEHOLDER = '_To be written:';
const MOST_CHARACTERS = 200_000;

/** The document with nothing in it but what belongs where. */
export function toTemplate(feature: string, template: Template, description: string): string {
  const sections = SECTIONS[template].map(({ title, about }, index) => {
    const known = index === 0 && description.trim() !== '' ? `${description.trim()}\n` : '';
    return `## ${title}\n\n${known === '' ? `${PLACEHOLDER} ${about}._\n` : known}`;
  });
  return `# Requirements: ${feature}\n\nStatus: DRAFT\n\n${sections.join('\n')}`;
}

export function toPlanPrompt(feature: string, template: Template, description: string): string {
  const sections = SECTIONS[template].map(({ title, about }) => `## ${title}\n(${about})`);
  return `Write the requirements of the feature "${feature}" of the repository in the current folder.
Look at the repository first. Change no file: your answer is the document.

This is what is asked for:

${description.trim()}

Answer with one Markdown document and nothing else, no words before or after it. It begins with the line
"# Requirements: ${feature}" and has exactly these sections, each with something in it:

${sections.join('\n\n')}

Be specific: name files, functions and commands of this repository. Decide nothing that the request leaves open; put
it as a question. Do not write down how the work is divided among people: that comes later.
`;
}

/** What is missing in a document, in words; empty when it will do. */
export function findGaps(document: string, template: Template): string[] {
  const bodies = readSections(document);
  return SECTIONS[template].flatMap(({ title }) => {
    const body = bodies.get(title.toLowerCase());
    if (body === undefined) return [`there is no section "## ${title}"`];
    return body.trim() === '' ? [`the section "## ${title}" is empty`] : [];
  });
}

function readSections(document: string): Map<string, string> {
  const parts = document.split(/^##[ \t]+(?!#)/m).slice(1);
  return new Map(
    parts.map((part) => {
      const [title = '', ...lines] = part.split('\n');
      // Agents like to number them.
      const plain = title.replace(/^[\d.]+\s*/, '').replaceAll(/[*_#:]/g, '');
      return [plain.trim().toLowerCase(), lines.join('\n')];
    }),
  );
}

/**
 * The document within what an agent has said: without a fence around it, and without words before it.
 * SECURITY: whatever it says about its status, it is a draft. Only a person approves.
 */
export function toDraft(answer: string, feature: string): string {
  const fenced = /^```(?:markdown|md)?[ \t]*\n([\s\S]*)\n```[ \t]*$/im.exec(answer)?.[1];
  const whole = (fenced ?? answer).replaceAll('\r\n', '\n');
  if (whole.length > MOST_CHARACTERS)
    throw new HotcellError('AGENT_FAILED', 'the agent has written far too much');
  const start = /^#[ \t]+/m.exec(whole)?.index ?? whole.search(/^##[ \t]+/m);
  const lines = whole.slice(Math.max(0, start)).split('\n');
  const title = lines[0]?.startsWith('# ') === true ? lines.shift() : undefined;
  const body = lines.filter((line) => !STATUS_LINE.test(line)).join('\n');
  return `${title ?? `# Requirements: ${feature}`}\n\nStatus: DRAFT\n\n${body.trim()}\n`;
}

/** `Status: APPROVED`, also as an entry of a list and in bold. */
const STATUS_LINE = /^[\s>|*_-]*status[\s*_|]*:[\s*_]*([a-z]+)/im;

export function statusOf(document: string): string | undefined {
  return STATUS_LINE.exec(document)?.[1]?.toUpperCase();
}

/** The same document with its first status set. Throws while something has still to be written. */
export function approve(document: string): string {
  const blank = [...readSections(document)].filter(([, body]) => body.includes(PLACEHOLDER));
  if (blank.length > 0) {
    const names = blank.map(([title]) => title).join(', ');
    throw new HotcellError('INVALID_REQUEST', `there is still something to be written in: ${names}`, {
      hint: `Write it in place of the lines that begin with "${PLACEHOLDER}", and approve it then.`,
    });
  }
  const found = STATUS_LINE.exec(document);
  if (found === null) {
    const [title = '', ...rest] = document.split('\n');
    return [title, '', 'Status: APPROVED', ...rest].join('\n');
  }
  const [line, word = ''] = found;
  const set = `${line.slice(0, line.length - word.length)}APPROVED`;
  return document.slice(0, found.index) + set + document.slice(found.index + line.length);
}
