import { expect, test } from 'vitest';
import { parseFleetConfig } from './read-fleet-config.ts';

const parse = (text: string) => parseFleetConfig('config.yaml', text, ['auto']);

test('[FL-07] without a file: 4 GB, 2 CPUs, five workers, Claude Code', () => {
  const { config, unknown } = parse('');
  expect(config.resources).toMatchObject({ container_memory_limit: 4 * 1024 ** 3, container_cpu_limit: 2 });
  expect(config.resources.worktree_disk).toBe(10 * 1024 ** 3);
  expect(config.workers).toMatchObject({ max_concurrent: 5, launcher_type: 'auto', retry_attempts: 3 });
  expect(config.agent).toMatchObject({ command: 'claude', prompt: 'stdin' });
  expect(unknown).toEqual([]);
});

test('[FL-07] sizes as Docker writes them', () => {
  const { config } = parse(
    'resources: {container_memory_limit: 1.5g, container_cpu_limit: 0.5, container_tmp: 512m, worktree_disk: 2t}',
  );
  expect(config.resources).toMatchObject({
    container_memory_limit: 1.5 * 1024 ** 3,
    container_cpu_limit: 0.5,
    container_tmp: 512 * 1024 ** 2,
    worktree_disk: 2 * 1024 ** 4,
  });
});

test('[FL-04] files with keys of other programs are taken; what means nothing here is named', () => {
  const { config, unknown } = parse(
    'project: x\nworkers: {max_concurrent: 3, context_threshold_percent: 70}\nsecurity: {level: standard}\n',
  );
  expect(config.workers.max_concurrent).toBe(3);
  expect(unknown).toEqual(['project', 'workers.context_threshold_percent', 'security']);
});

test.each([
  ['workers: {max_concurrent: many}', 'workers.max_concurrent'],
  ['resources: {container_memory_limit: 4 potatoes}', 'resources.container_memory_limit'],
  ['quality_gates: [{name: "../x", command: y}]', 'quality_gates.0.name'],
  ['agent: {prompt: telepathy}', 'agent.prompt'],
  ['workers: []', 'workers'],
])('[FL-04] %s is refused by the name of the key', (text, field) => {
  expect(() => parse(text)).toThrow(field);
});

test('[FL-04] what is no YAML is said', () => {
  expect(() => parse('a: [')).toThrow('config.yaml');
  expect(() => parse('just words')).toThrow('config.yaml');
});
