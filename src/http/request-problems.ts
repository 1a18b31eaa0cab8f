import * as z from 'zod';
import { HotcellError } from '../core/errors.ts';
import { typeWord } from './json-body.ts';

type Issue = z.core.$ZodIssue;
type JsonSchema = z.core.JSONSchema.JSONSchema;
type Path = readonly PropertyKey[];

const ISSUES_SHOWN = 3;
const NAME_CHARACTERS_SHOWN = 64;

/** Parses with a schema; what is wrong comes out as one INVALID_REQUEST in plain words. */
export function makeRequestParser<Schema extends z.ZodType>(
  schema: Schema,
): (body: unknown) => z.output<Schema> {
  const shape = z.toJSONSchema(schema, { io: 'input' });
  return (body) => {
    const parsed = schema.safeParse(body, { reportInput: true });
    if (parsed.success) return parsed.data;
    throw toInvalidRequest(parsed.error.issues, shape);
  };
}

function toInvalidRequest(issues: readonly Issue[], shape: JsonSchema): HotcellError {
  const problems = issues.slice(0, ISSUES_SHOWN).map((issue) => describe(issue, shape));
  const more = issues.length - problems.length;
  const detail = problems.map((problem) => problem.text).join('; ') + (more > 0 ? `; and ${more} more` : '');
  const field = problems[0]?.field;
  return new HotcellError('INVALID_REQUEST', detail, field === undefined ? {} : { field });
}

function describe(issue: Issue, shape: JsonSchema): { text: string; field: string } {
  if (issue.code === 'unrecognized_keys') {
    const names = issue.keys.slice(0, ISSUES_SHOWN).map(quoted).join(', ');
    const known = knownFields(shape, issue.path).join(', ');
    const where = issue.path.length === 0 ? '' : `${pathText(issue.path)}: `;
    return {
      text: `${where}unknown field ${names}; known fields: ${known}`,
      field: pathText([...issue.path, ...issue.keys.slice(0, 1)]),
    };
  }
  if (issue.code === 'invalid_union') {
    // The side whose type fits says more than that no side fits.
    const nearest = issue.errors
      .map(([first]) => first)
      .find((first) => first !== undefined && !isWrongType(first));
    if (nearest !== undefined) return describe({ ...nearest, path: [...issue.path, ...nearest.path] }, shape);
  }
  const field = pathText(issue.path);
  return { text: field === '' ? complaint(issue) : `${field}: ${complaint(issue)}`, field };
}

function isWrongType(issue: Issue): boolean {
  return issue.code === 'invalid_type' && issue.path.length === 0;
}

function complaint(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'is missing';
      return `must be ${expectedWord(issue.expected)}, got ${gotWord(issue.input)}`;
    case 'too_small':
      return `must ${sizeVerb(issue.origin)} at least ${issue.minimum}${sizeUnit(issue.origin)}`;
    case 'too_big':
      return `must ${sizeVerb(issue.origin)} at most ${issue.maximum}${sizeUnit(issue.origin)}`;
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map((value) => JSON.stringify(value)).join(', ')}`;
    case 'invalid_union':
      return unionComplaint(issue);
    case 'invalid_key':
      return issue.issues[0]?.message ?? issue.message;
    case 'custom':
    case 'invalid_element':
    case 'invalid_format':
    case 'not_multiple_of':
    case 'unrecognized_keys':
      break;
  }
  return issue.message;
}

function unionComplaint(issue: Extract<Issue, { code: 'invalid_union' }>): string {
  const expected = issue.errors.flatMap(([first]) =>
    first?.code === 'invalid_type' ? [first.expected] : [],
  );
  if (expected.length === 0) return issue.message;
  return `must be ${expected.map(expectedWord).join(' or ')}, got ${gotWord(issue.input)}`;
}

function expectedWord(expected: string): string {
  switch (expected) {
    case 'int':
      return 'a whole number';
    case 'array':
    case 'object':
      return `an ${expected}`;
    case 'record':
      return 'an object';
    default:
      return `a ${expected}`;
  }
}

/** Numbers are shown because their value is the mistake; other values may be secrets and stay unsaid. */
function gotWord(input: unknown): string {
  return typeof input === 'number' && !Number.isInteger(input) ? String(input) : typeWord(input);
}

function sizeVerb(origin: string): string {
  return origin === 'array' || origin === 'string' ? 'have' : 'be';
}

function sizeUnit(origin: string): string {
  if (origin === 'array') return ' items';
  return origin === 'string' ? ' characters' : '';
}

/** `files[0].path`, and `env["1a"]` where a part is no plain name. */
function pathText(path: Path): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    // Headers have hyphens; below the top they would look like a difference.
    else if (/^[A-Za-z_]\w{0,63}$/.test(String(part)) || (text === '' && /^[a-z-]{1,64}$/.test(String(part))))
      text += (text === '' ? '' : '.') + String(part);
    else text += `[${quoted(String(part))}]`;
  }
  return text;
}

function quoted(name: string): string {
  const shown = name.length > NAME_CHARACTERS_SHOWN ? `${name.slice(0, NAME_CHARACTERS_SHOWN)}…` : name;
  return JSON.stringify(shown);
}

function knownFields(shape: JsonSchema, path: Path): string[] {
  let node: JsonSchema | undefined = shape;
  for (const part of path) node = node === undefined ? undefined : schemaBelow(node, part);
  return Object.keys(node?.properties ?? {});
}

function schemaBelow(schema: JsonSchema, part: PropertyKey): JsonSchema | undefined {
  const below = typeof part === 'number' ? schema.items : schema.properties?.[String(part)];
  return typeof below === 'object' && !Array.isArray(below) ? below : undefined;
}
