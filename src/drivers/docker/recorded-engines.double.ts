/**
 * For tests: what engines answer to `/version` and `/info`, as far as it matters. The first two were recorded on Debian
 * 12; the others are those with the differences that their documentation names.
 */
export interface RecordedEngine {
  readonly version: unknown;
  readonly info: Readonly<Record<string, unknown>>;
}

export const DOCKER_20: RecordedEngine = {
  version: {
    Platform: { Name: '' },
    Components: [
      {
        Name: 'Engine',
        Version: '20.10.24+dfsg1',
        Details: {
          ApiVersion: '1.41',
          Arch: 'amd64',
          GoVersion: 'go1.19.8',
          MinAPIVersion: '1.12',
          Os: 'linux',
        },
      },
      { Name: 'containerd', Version: '1.6.20~ds1', Details: { GitCommit: '1.6.20~ds1-1+deb12u3' } },
      { Name: 'runc', Version: '1.1.5+ds1', Details: { GitCommit: '1.1.5+ds1-1+deb12u1' } },
      { Name: 'docker-init', Version: '0.19.0', Details: { GitCommit: '' } },
    ],
    Version: '20.10.24+dfsg1',
    ApiVersion: '1.41',
    MinAPIVersion: '1.12',
    Os: 'linux',
    Arch: 'amd64',
  },
  info: {
    Containers: 0,
    Images: 49,
    Driver: 'overlay2',
    MemoryLimit: true,
    SwapLimit: true,
    KernelMemory: true,
    CpuCfsPeriod: true,
    CpuCfsQuota: true,
    PidsLimit: true,
    OomKillDisable: true,
    LoggingDriver: 'json-file',
    CgroupDriver: 'cgroupfs',
    CgroupVersion: '1',
    OperatingSystem: 'Debian GNU/Linux 12 (bookworm)',
    OSType: 'linux',
    Architecture: 'x86_64',
    NCPU: 2,
    DockerRootDir: '/nonexistent/docker',
    Labels: [],
    ServerVersion: '20.10.24+dfsg1',
    Runtimes: {
      'io.containerd.runc.v2': { path: 'runc' },
      'io.containerd.runtime.v1.linux': { path: 'runc' },
      runc: { path: 'runc' },
      runsc: { path: '/usr/bin/runsc' },
    },
    DefaultRuntime: 'runc',
    SecurityOptions: ['name=seccomp,profile=default'],
    Warnings: null,
  },
};

export const PODMAN_4: RecordedEngine = {
  version: {
    Platform: { Name: 'linux/amd64/debian-12' },
    Components: [
      {
        Name: 'Podman Engine',
        Version: '4.3.1',
        Details: { APIVersion: '4.3.1', Arch: 'amd64', MinAPIVersion: '4.0.0', Os: 'linux' },
      },
      { Name: 'Conmon', Version: 'conmon version 2.1.6, commit: unknown' },
      { Name: 'OCI Runtime (crun)', Version: 'crun version 1.8.1' },
    ],
    Version: '4.3.1',
    ApiVersion: '1.41',
    MinAPIVersion: '1.24',
    Os: 'linux',
    Arch: 'amd64',
  },
  info: {
    Containers: 0,
    Images: 0,
    Driver: 'vfs',
    DriverStatus: [],
    MemoryLimit: true,
    SwapLimit: true,
    KernelMemory: false,
    CpuCfsQuota: true,
    PidsLimit: true,
    LoggingDriver: '',
    CgroupDriver: 'cgroupfs',
    OperatingSystem: 'debian',
    OSType: 'linux',
    Architecture: 'amd64',
    NCPU: 2,
    DockerRootDir: '/nonexistent/podman',
    Labels: null,
    ServerVersion: '4.3.1',
    Runtimes: { crun: { path: '/usr/bin/crun' }, kata: { path: '/usr/bin/kata-runtime' } },
    DefaultRuntime: 'crun',
    SecurityOptions: ['name=seccomp,profile=default'],
    Warnings: [],
    CgroupVersion: '1',
    Rootless: false,
  },
};

/** Without a delegated cgroup: nothing can be limited. */
export const ROOTLESS_DOCKER: RecordedEngine = {
  version: DOCKER_20.version,
  info: {
    ...DOCKER_20.info,
    CgroupDriver: 'none',
    CgroupVersion: '1',
    MemoryLimit: false,
    SwapLimit: false,
    CpuCfsQuota: false,
    PidsLimit: false,
    SecurityOptions: ['name=seccomp,profile=default', 'name=rootless'],
  },
};

export const WINDOWS_CONTAINERS: RecordedEngine = {
  version: {
    Version: '24.0.7',
    Components: [{ Name: 'Engine' }],
    ApiVersion: '1.43',
    Os: 'windows',
    Arch: 'amd64',
  },
  info: {
    Driver: 'windowsfilter',
    OSType: 'windows',
    Architecture: 'x86_64',
    DockerRootDir: 'C:\\ProgramData\\Docker',
    Runtimes: { 'com.docker.hcsshim.v1': {} },
    DefaultRuntime: 'com.docker.hcsshim.v1',
    SecurityOptions: [],
    Isolation: 'hyperv',
  },
};
