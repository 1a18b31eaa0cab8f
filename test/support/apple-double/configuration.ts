/** A container as `list` and `inspect` show it. */
export interface Configuration {
  readonly capAdd: readonly string[];
  readonly capDrop: readonly string[];
  readonly creationDate: string;
  readonly dns?: {
    readonly nameservers: string[];
    readonly options: string[];
    readonly searchDomains: string[];
  };
  readonly id: string;
  readonly image: { readonly descriptor: ImageDescriptor; readonly reference: string };
  readonly initProcess: InitProcess;
  readonly labels: Readonly<Record<string, string>>;
  readonly mounts: readonly MountEntry[];
  readonly networks: readonly { readonly network: string; readonly options: object }[];
  readonly platform: { readonly architecture: string; readonly os: string };
  readonly publishedPorts: readonly unknown[];
  readonly publishedSockets: readonly unknown[];
  readonly readOnly: boolean;
  readonly resources: { readonly cpuOverhead: number; readonly cpus: number; readonly memoryInBytes: number };
  readonly rosetta: boolean;
  readonly runtimeHandler: string;
  readonly shmSize?: number;
  readonly ssh: boolean;
  readonly sysctls: object;
  readonly useInit: boolean;
  readonly virtualization: boolean;
}

export interface ImageDescriptor {
  readonly digest: string;
  readonly mediaType: string;
  readonly size: number;
}

export interface InitProcess {
  readonly arguments: readonly string[];
  readonly environment: readonly string[];
  readonly executable: string;
  readonly rlimits: readonly { readonly hard: number; readonly limit: string; readonly soft: number }[];
  readonly supplementalGroups: readonly number[];
  readonly terminal: boolean;
  readonly user: UserEntry;
  readonly workingDirectory: string;
}

export type UserEntry =
  | { readonly id: { readonly gid: number; readonly uid: number } }
  | { readonly raw: { readonly userString: string } };

export interface MountEntry {
  readonly destination: string;
  readonly options: readonly string[];
  readonly source: string;
  readonly type: { readonly virtiofs: object } | { readonly tmpfs: object };
}

export type ContainerState = 'stopped' | 'running' | 'stopping';

export interface ContainerRecord {
  readonly configuration: Configuration;
  /** `--rm` */
  readonly autoRemove: boolean;
  /** `-i` */
  readonly interactive: boolean;
}

export interface Image {
  readonly reference: string;
  readonly created: string;
  readonly descriptor: ImageDescriptor & { readonly annotations?: object };
  readonly config: {
    readonly User?: string;
    readonly Env?: readonly string[];
    readonly Entrypoint?: readonly string[];
    readonly Cmd?: readonly string[];
    readonly WorkingDir?: string;
    readonly Labels?: Readonly<Record<string, string>>;
  };
}
