import { readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { MASKED_PATHS, MASKED_SYS_PATHS } from '../../src/drivers/linux/masked-paths.ts';
import { expectServes, instancesOf, runCode, startServer, stopClean } from '../support/live-server.ts';
import { waitFor } from '../support/leftovers.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';
import { CELL_VIEW } from './cell-view.ts';

const SECRET = `secret-${crypto.randomUUID()}`;

describeEach(FRESH_WAYS, (way) => {
  const view = CELL_VIEW[way.driver];
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({
      way,
      languages: ['bash', 'python'],
      env: { MY_SECRET: SECRET, AWS_SECRET_ACCESS_KEY: SECRET },
    });
  });
  afterEach(() => expectServes(server));
  afterAll(() => stopClean(server));

  /** What a shell prints in a cell. */
  async function shell(code: string): Promise<string> {
    const { stdout } = await runCode(server, 'bash', { code, timeout_ms: 30_000 });
    return stdout;
  }

  describe('identity', () => {
    test('[SC-03, CX-09] an unprivileged user with nothing to gain', async () => {
      const status = await shell('cat /proc/self/status');
      const field = (name: string): string =>
        new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(status)?.[1]?.trim() ?? '';
      for (const ids of [field('Uid'), field('Gid')].map((text) => text.split('\t'))) {
        expect(new Set(ids).size).toBe(1);
        expect(ids[0]).toMatch(view.user);
      }
      expect(field('Groups')).toMatch(view.groups);
      for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
        expect(Number(`0x${field(set)}`)).toBe(0);
      expect(field('NoNewPrivs')).toBe('1');
      expect(field('Seccomp')).toBe('2');
    });

    test('[SC-03] the namespaces are the cell’s own', async () => {
      const kinds = view.namespaces;
      const inside = (await shell(`for kind in ${kinds.join(' ')}; do readlink /proc/self/ns/$kind; done`))
        .trim()
        .split('\n');
      expect(inside.map((link) => link.split(':')[0])).toEqual(kinds);
      for (const link of inside) expect(readlinkSync(`/proc/self/ns/${link.split(':')[0]}`)).not.toBe(link);
    });

    test('[SC-03] two cells are two users on the host', async () => {
      const owners = [await shell(view.printHostUser), await shell(view.printHostUser)];
      expect(owners[0]).toMatch(/^\d+\n$/);
      expect(owners[0]).not.toBe(owners[1]);
      for (const owner of owners) expect(Number(owner)).toBeGreaterThan(0x70000000 - 1);
    });

    test('[SC-03] programs with the set-user-id bit raise nothing', async () => {
      const found = await shell(`find /usr /opt -xdev -perm /6000 -type f 2>/dev/null
for name in su mount umount passwd newgrp sudo ping; do
  command -v $name >/dev/null && timeout 2 $name -c id </dev/null 2>/dev/null
done
cp /usr/bin/id /tmp/id && chmod 6755 /tmp/id && /tmp/id`);
      // There are such programs on this host, or the test would prove nothing.
      expect(found).toMatch(/^\/usr\/bin\/(?:su|mount|passwd)$/m);
      expect(found).not.toMatch(/(?:uid|euid)=0/);
      expect(/^uid=(\d+)/m.exec(found)?.[1]).toMatch(view.user);
    });
  });

  describe('host files', () => {
    test('[CX-09, SC-03] nothing can be written but /tmp', async () => {
      const code = `import os, stat
os.chmod('/tmp', 0o1777) if os.stat('/tmp').st_uid == os.getuid() else None
def try_folder(folder):
    try:
        os.mkdir(folder + '/hotcell-probe'); os.rmdir(folder + '/hotcell-probe'); return True
    except OSError: return False
def try_file(path):
    try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK)); return True
    except OSError: return False
bad = []
for folder, folders, files in os.walk('/'):
    if folder.startswith(('/proc', '/tmp')): folders[:] = []; continue
    if try_folder(folder): bad.append(folder)
    for name in files:
        path = os.path.join(folder, name)
        try: kind = os.lstat(path).st_mode
        except OSError: continue
        if os.access(path, os.W_OK, follow_symlinks=False) and not stat.S_ISLNK(kind) and try_file(path): bad.append(path)
print('\\n'.join(sorted(bad)))`;
      const { stdout } = await runCode(server, 'python', { code, timeout_ms: 60_000 });
      const found = stdout.trim().split('\n');
      // It finds what can be written, or the rest would prove nothing.
      expect(found).toEqual(expect.arrayContaining(['/dev/full', '/dev/null', '/dev/zero']));
      const allowed = [...view.devices, ...view.writable];
      expect(found.filter((path) => !allowed.includes(path))).toEqual([]);
    });

    test('[SC-03] the mounts that are writable can carry neither devices nor set-user-id programs', async () => {
      const mounts = (await shell('cat /proc/self/mounts'))
        .trim()
        .split('\n')
        .map((line) => line.split(' '));
      const masked = new Set([...MASKED_PATHS, ...MASKED_SYS_PATHS]);
      const writable = mounts.filter(
        ([, point = '', , options = '']) =>
          options.startsWith('rw') && !point.startsWith('/dev/') && !masked.has(point),
      );
      expect(new Set(writable.map(([, point]) => point))).toEqual(new Set(view.writableMounts));
      for (const [, point, , options = ''] of writable) {
        // In the folder of the devices nothing can be made, as the test before this one shows.
        const needed = point === '/dev' ? ['nosuid'] : ['nosuid', 'nodev'];
        expect(options.split(',')).toEqual(expect.arrayContaining(needed));
      }
    });

    test('[SC-03] files of the host are not there', async () => {
      const names = ['/tmp', '/var/tmp', '/dev/shm'].map((folder) => `${folder}/${SECRET}`);
      for (const name of names) writeFileSync(name, SECRET);
      const places = [...names, server.stateDirectory, '/work', '/var/lib/docker', '/var/run/docker.sock'];
      const found = await shell(
        `for place in ${places.join(' ')}; do [ -e "$place" ] && echo "$place"; done; echo end`,
      );
      for (const name of names) rmSync(name);
      expect(found).toBe('end\n');
    });

    // With an engine the root is the image's, whatever that has.
    if (way.driver === 'oci')
      test('[SC-03] folders of the host are not there', async () => {
        expect(
          (await shell('ls -A /'))
            .trim()
            .split('\n')
            .filter((name) => !name.startsWith('lib')),
        ).toEqual(['bin', 'dev', 'etc', 'opt', 'proc', 'run', 'sbin', 'tmp', 'usr']);
        const places = [
          '/root',
          '/home',
          '/var',
          '/sys',
          '/boot',
          '/mnt',
          '/srv',
          '/work',
          server.stateDirectory,
        ];
        expect(
          await shell(`for place in ${places.join(' ')}; do [ -e "$place" ] && echo "$place"; done`),
        ).toBe('');
        expect((await shell('ls -A /etc')).trim().split('\n').toSorted()).toEqual([
          'alternatives',
          'group',
          'hosts',
          'ld.so.cache',
          'nsswitch.conf',
          'passwd',
          'resolv.conf',
        ]);
        expect(await shell('cut -d: -f1 /etc/passwd')).toBe('root\nrunner\nnobody\n');
        expect(await shell('ls -A /run /run/hotcell | tr "\\n" " "')).toBe(
          '/run: hotcell  /run/hotcell: err hold in out status ',
        );
      });

    test('[SC-03] the only devices are harmless ones', async () => {
      // Not by `find -type`, which believes the folder's entries, where the devices are plain files below their mounts.
      const walk = `import os, stat
for folder, folders, files in os.walk('/'):
    # What is masked there is /dev/null again.
    if folder == '/proc': folders[:] = []; continue
    for path in (os.path.join(folder, name) for name in files):
        mode = os.lstat(path).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode): print(path)`;
      const found = (await runCode(server, 'python', { code: walk, timeout_ms: 60_000 })).stdout;
      expect(found.trim().split('\n').toSorted()).toEqual(view.devices.toSorted());
      expect(await shell('for type in b c; do mknod /tmp/d $type 1 1 2>&1 && echo made; done')).not.toContain(
        'made',
      );
    });

    test('[SC-03] kernel settings and memory are out of reach', async () => {
      const code = `for file in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/drop_caches /proc/sysrq-trigger \\
    /proc/1/oom_score_adj /proc/irq/default_smp_affinity /proc/self/uid_map /proc/self/gid_map; do
  [ $file = /proc/1/oom_score_adj ] && word=-1000 || word=0
  (echo $word >$file) 2>/dev/null && echo "wrote $file"
done
for file in /proc/kcore /proc/kallsyms /proc/kmsg /proc/keys /proc/timer_list /proc/config.gz /proc/sched_debug /dev/mem; do
  [ -n "$(head -c 64 $file 2>/dev/null | tr -d '\\0')" ] && echo "read $file"
done`;
      expect(await shell(code)).toBe('');
      const tables = 'find /sys/firmware /sys/devices/virtual/powercap -mindepth 1 2>/dev/null | wc -l';
      expect(await shell(tables)).toBe('0\n');
    });
  });

  describe('secrets', () => {
    test('[SC-03, CX-19] no variable, name or process of the host is seen', async () => {
      expect((await shell('env | cut -d= -f1 | sort | tr "\\n" " "')).trim()).toBe(view.variables);
      const name = (await shell('hostname; cat /proc/sys/kernel/hostname; uname -n')).trim().split('\n');
      expect(new Set(name).size).toBe(1);
      expect(name[0]).toMatch(/^code-runner-bash-[0-9a-f]{4}$/);
      expect(name[0]).not.toBe(hostname());
      const processes = (
        await shell('cat /proc/[0-9]*/cmdline | tr "\\0" " "; echo; ls -d /proc/[0-9]* | wc -l')
      ).trim();
      expect(processes).not.toContain('node ');
      expect(Number(processes.split('\n').at(-1))).toBeLessThan(10);
    });

    test.each(['python', 'bash'])('[SC-03] the server’s secret is nowhere: %s', async (language) => {
      // In two parts, so that the search does not find itself.
      const bash = `needle='${SECRET.slice(0, 20)}''${SECRET.slice(20)}'
for file in /proc/[0-9]*/environ /proc/[0-9]*/cmdline /etc/* /run/*; do
  [ -f $file ] && [[ $(tr -d '\\0' <$file) == *"$needle"* ]] && echo $file
done
[[ $(export -p) == *"$needle"* ]]; echo $((1 - $?))`;
      const python = `import glob, os
needle = ('${SECRET.slice(0, 20)}' '${SECRET.slice(20)}').encode()
own = __file__
for path in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/etc/*') + glob.glob('/tmp/*'):
    try:
        if path != own and needle in open(path, 'rb').read(): print(path)
    except OSError: pass
print(sum(needle.decode() in value for value in os.environ.values()))`;
      expect((await runCode(server, language, language === 'bash' ? bash : python)).stdout).toBe('0\n');
    });

    test('[SC-03] no descriptor of the server is left open in the cell', async () => {
      const links = (await shell('ls -l /proc/self/fd | sed -n "s/.* -> //p"')).trim().split('\n');
      const known = [/^\/run\/hotcell\/(?:in|out|err)$/, /^\/proc\/\d+\/fd$/, /^\/tmp\/exec_/, /^pipe:/];
      expect(links.filter((link) => !known.some((pattern) => pattern.test(link)))).toEqual([]);
    });
  });

  if (way.driver === 'docker')
    describe('the agent', () => {
      test('[SC-03, CX-09] its streams and its memory are out of reach', async () => {
        const code = `for file in fd/0 fd/1 fd/2 mem maps environ root/ cwd/ auxv; do
  head -c 1 /proc/1/$file >/dev/null 2>&1 && echo "read $file"
done
ls /proc/1/fd 2>/dev/null
for number in 0 1 2 3 4 5 6 7 8 9; do (echo x >/proc/1/fd/$number) 2>/dev/null && echo "wrote $number"; done
tr '\\0' ' ' </proc/1/cmdline`;
        expect(await shell(code)).toMatch(/^perl \/opt\/hotcell\/guest\/agent\.pl *$/);
      });

      test('[CX-09, CX-04] its words in the output of a program are output', async () => {
        const code = `import os, struct, sys
word = b'wait=0 cpu_us=0'
for id in (0, 1, 2): os.write(1, struct.pack('>cII', b'X', id, len(word)) + word)
sys.exit(3)`;
        const reply = await runCode(server, 'python', code);
        expect(reply).toMatchObject({ exit_code: 3, receipt: { stdout_bytes: 3 * (9 + 15) } });
      });
    });

  // With an engine there is none: one connection carries everything, and only the agent has it.
  if (way.driver === 'oci')
    describe('the status FIFO', () => {
      test.each([
        ['a forged success', 'echo "exit 0" >/run/hotcell/status; exit 3', 3],
        ['a forged number', 'echo "exit 999" >/run/hotcell/status; exit 3', 3],
        ['a forged signal', 'echo Killed >/run/hotcell/status; exit 7', 7],
      ])('[CX-09, CX-04] %s changes nothing', async (_what, code, exitCode) => {
        expect(await runCode(server, 'bash', code)).toMatchObject({ exit_code: exitCode });
      });

      test('[CX-09, CX-04] noise in it is no failure of ours', async () => {
        expect(
          (await server.execute('bash', { code: 'printf noise >/run/hotcell/status; exit 3' })).status,
        ).toBe(200);
      });

      test('[CX-09] whatever is done to the channel, the server keeps its cells', async () => {
        const instances = instancesOf(server.stateDirectory);
        for (const code of [
          'cat /run/hotcell/status & exec sleep 100',
          'exec 3<>/run/hotcell/hold 4<>/run/hotcell/in 5<>/run/hotcell/out; sleep 100',
          'rm -rf /run/hotcell; sleep 100',
        ]) {
          const { status } = await server.execute('bash', { code, timeout_ms: 500 });
          expect([200, 503]).toContain(status);
        }
        await waitFor('the server is whole again', async () => (await server.health()).status === 'ok');
        expect(instancesOf(server.stateDirectory)).toEqual(instances);
      });
    });
});
