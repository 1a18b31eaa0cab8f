import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectServes, runCode, startServer, stopClean } from '../support/live-server.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';

describeEach(FRESH_WAYS, (way) => {
  let server: TestServer;
  const listeners: Server[] = [];
  const abstractName = `hotcell-test-${randomUUID()}`;
  const doors: { host: string; port: number }[] = [];
  let connections = 0;

  async function listen(where: { host: string; port: number } | { path: string }): Promise<Server> {
    const listener = createServer((socket) => {
      connections++;
      socket.destroy();
    });
    listener.listen(where);
    await once(listener, 'listening');
    listeners.push(listener);
    return listener;
  }

  beforeAll(async () => {
    server = await startServer({ way, languages: ['bash', 'javascript', 'python'] });
    const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
    const usable = addresses.filter(({ address }) => !address.startsWith('fe80'));
    for (const { address: host } of usable) {
      const { port } = (await listen({ host, port: 0 })).address() as AddressInfo;
      doors.push({ host, port });
    }
    await listen({ path: `\0${abstractName}` });
  });
  afterAll(async () => {
    for (const listener of listeners) listener.close();
    await stopClean(server);
  });

  describe('network', () => {
    test('[CX-09] the only interface is a loopback of the cell’s own', async () => {
      const { stdout } = await runCode(
        server,
        'python',
        'import socket\nprint([name for _, name in socket.if_nameindex()])',
      );
      expect(stdout).toBe("['lo']\n");
      const routes = await runCode(
        server,
        'bash',
        'tail -n +2 /proc/net/route; grep -v " lo$" /proc/net/ipv6_route; grep -v lo: /proc/net/dev | tail -n +3',
      );
      expect(routes.stdout).toBe('');
    });

    test('[CX-09] no listener of the host is reached, by no address', async () => {
      const own = new URL(server.url);
      const targets = [...doors, { host: own.hostname, port: Number(own.port) }];
      // The listeners can be reached from here, or silence would prove nothing.
      expect(doors.length).toBeGreaterThan(0);
      const code = `import socket
for host, port in ${JSON.stringify(targets.map(({ host, port }) => [host, port]))}:
    try: socket.create_connection((host, port), timeout=2); print('reached', host)
    except OSError as error: print('refused')`;
      const python = await runCode(server, 'python', { code, timeout_ms: 60_000 });
      expect(python.stdout).toBe('refused\n'.repeat(targets.length));
      const bash = targets
        .map(({ host, port }) => `(exec 3<>/dev/tcp/${host}/${port}) 2>/dev/null && echo reached; `)
        .join('');
      expect((await runCode(server, 'bash', { code: bash, timeout_ms: 60_000 })).stdout).toBe('');
      expect(connections).toBe(0);
    });

    test('[CX-09] an abstract socket of the host is not there', async () => {
      const code = `import socket
try: socket.socket(socket.AF_UNIX).connect('\\0${abstractName}'); print('reached')
except OSError as error: print(error.errno)
print(open('/proc/net/unix').read().count('${abstractName}'))`;
      expect((await runCode(server, 'python', code)).stdout).toBe('111\n0\n');
      expect(connections).toBe(0);
    });

    test.each([
      [
        'python',
        "import socket\ntry: print(socket.getaddrinfo('example.com', 80))\nexcept OSError: print('no name')",
      ],
      [
        'javascript',
        "require('dns').lookup('example.com', (error) => console.log(error ? 'no name' : 'name'))",
      ],
      ['bash', 'getent hosts example.com || echo no name'],
    ])('[CX-09] no name is resolved: %s', async (language, code) => {
      expect((await runCode(server, language, { code, timeout_ms: 60_000 })).stdout).toBe('no name\n');
    });

    test.each([
      '1.1.1.1',
      '169.254.169.254',
      '10.0.0.1',
      '::ffff:1.1.1.1',
      '2606:4700:4700::1111',
      'fe80::1',
    ])('[CX-09] nothing goes to %s, by TCP or UDP', async (address) => {
      const code = `import socket
family = socket.AF_INET6 if ':' in '${address}' else socket.AF_INET
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    connection = socket.socket(family, kind); connection.settimeout(2)
    try: connection.connect(('${address}', 53)); connection.send(b'x'); print('sent')
    except OSError as error: print(type(error).__name__ != 'TimeoutError')`;
      // At once and by the kernel: there is no route, rather than nobody who answers.
      expect((await runCode(server, 'python', code)).stdout).toBe('True\nTrue\n');
    });

    test('[CX-09] the cell cannot give itself an interface or a route', async () => {
      const code = `import socket, struct
control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
import fcntl
for request in (0x8914, 0x8916, 0x890B):
    try: fcntl.ioctl(control, request, struct.pack('16sh22x', b'lo', 0x41)); print('done')
    except OSError as error: print(error.errno)`;
      expect((await runCode(server, 'python', code)).stdout).not.toContain('done');
      expect(
        (await runCode(server, 'bash', 'ip link add x type dummy 2>&1 || echo refused')).stdout,
      ).toContain('refused');
      await expectServes(server);
    });
  });
});
