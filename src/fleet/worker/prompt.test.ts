import { expect, test } from 'vitest';
import { Task } from '../task-graph.ts';
import { toPrompt } from './prompt.ts';

const task = Task.parse({
  id: 'API-1',
  title: 'add the route',
  level: 1,
  description: 'It answers 200.',
  files: { create: ['src/route.ts'], modify: ['src/app.ts'], read: ['README.md'] },
  verification: { command: 'npm test -- route' },
  acceptance_criteria: ['answers', 'quickly'],
});
const parts = { feature: 'login', task, specs: [], lastError: undefined, goesOn: false };

test('[FL-03] the agent is told what to do, what is its own, and what is checked', () => {
  const prompt = toPrompt(parts);
  for (const words of [
    'API-1: add the route',
    'It answers 200.',
    '- src/route.ts',
    '- src/app.ts',
    '- README.md',
  ])
    expect(prompt).toContain(words);
  expect(prompt).toContain('    npm test -- route');
  expect(prompt).toContain('- quickly');
  expect(prompt).toContain('Do NOT commit');
  expect(prompt).not.toContain('last attempt failed');
});

test('[FL-12] the next attempt learns why the last one failed', () => {
  const prompt = toPrompt({ ...parts, lastError: `${'x'.repeat(10_000)} expected 200, got 500` });
  expect(prompt).toContain('expected 200, got 500');
  expect(prompt.length).toBeLessThan(6000);
});

test('[FL-03] what was written down comes along, shortened', () => {
  const prompt = toPrompt({ ...parts, specs: [{ name: 'requirements.md', text: 'r'.repeat(50_000) }] });
  expect(prompt).toContain('## requirements.md');
  expect(prompt).toContain('[… 42000 more characters]');
});

test('[FL-03] an agent that was put aside or asked is told what it said, and what the answer is', () => {
  const prompt = toPrompt({ ...parts, goesOn: true, said: 'red or blue?', answer: 'blue' });
  expect(prompt).toContain('## What you said last\nred or blue?');
  expect(prompt).toContain('## What a person answers\nblue');
  expect(prompt).toContain('Go on from there');
  expect(toPrompt(parts)).not.toMatch(/said last|person answers/);
});

test('[FL-03] an agent that has no exit codes is told how to end', () => {
  for (const words of ['HOTCELL: done', 'HOTCELL: continue', 'HOTCELL: blocked', 'HOTCELL: ask'])
    expect(toPrompt(parts)).toContain(words);
});
