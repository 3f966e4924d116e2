import type { Status } from '../../base/reports/status.ts'
import type { LoadedConfig } from '../../config/load.ts'
import type { Config } from '../../config/schema.ts'
import type { unknownQuota } from '../../upstream/http/quota.ts'
import type { Upstream } from '../../upstream/surfaces.ts'
import type { StorageState } from '../../base/reports/storage.ts'
import { secretFilePath } from '../../config/kinds/webhooks.ts'
import { type KeptSecret, faultOfSecretFile, isValidAt } from '../../webhooks/receive/secret-file.ts'

/** A webhook secret of this mirror without the secret itself. */
type KnownSecret = Omit<KeptSecret, 'secret'>

/** What a path is answered with; `allow`: the methods that the answer names, null: none. */
export interface PathAnswer {
  readonly status: number
  readonly allow: string | null
}

/** Which daemon answers at the address of the settings. */
export interface AnsweringDaemon {
  readonly url: string
  /** Null: something that is not Patchmirror answers. */
  readonly instance: string | null
  /** Sends OPTIONS for a path to it. Rejects with the network's error. */
  readonly optionsOf: (path: string) => Promise<PathAnswer>
}

/** Everything that the doctor examines, and the means to do so. Nothing in it writes to the database or takes a lock. */
export interface DoctorWorld {
  /** The settings in force; where a file that they name is broken, without that setting; null when they cannot be read. */
  readonly loaded: LoadedConfig | null
  /** Why the settings are refused; null when they are not. */
  readonly problem: string | null
  readonly env: NodeJS.ProcessEnv
  readonly version: string
  /** Version of Node.js, such as 24.9.0, and the oldest one that the program runs on. */
  readonly node: { readonly version: string; readonly oldest: string }
  readonly now: () => number
  /** Limit of each check, milliseconds. */
  readonly timeoutMs: number
  /** Returns the kind of a folder's file system, as statfs numbers it. */
  readonly fileSystemType: (dir: string) => number
  readonly probeStorage: (dir: string, write: boolean) => StorageState
  /** Asks the address of the settings, and the given port, which daemon answers; null: none. */
  readonly findDaemon: (config: Config, port: number | null) => Promise<AnsweringDaemon | null>
  /** Returns the daemon's status, else the same from the data folder; null when nothing is stored. */
  readonly readStatus: (config: Config) => Promise<Status | null>
  /** Returns the webhook secrets that are stored: those of the settings alone where the file cannot be used, which the status says. */
  readonly readSecrets: (config: Config) => readonly KnownSecret[]
}

/** The service as the doctor asks it, and what the headers of its responses say. */
export interface ServiceProbe {
  readonly upstream: Upstream
  /** By how much upstream's clock is ahead, milliseconds; null: no response had a date. */
  clock: number | null
  /** What the responses say of the rate limit. */
  readonly quota: ReturnType<typeof unknownQuota>
  /** Why the service refuses further requests for now; null: it does not, or for the credential. */
  refusal: string | null
  /** Whether it limits requests because the credential was refused before: its limits say nothing about rates then. */
  isKeyLimited: boolean
}

/** What the checks examine: the mirror with its settings, and the service. */
export interface Examined {
  readonly world: DoctorWorld
  readonly config: Config
  readonly probe: ServiceProbe
}

/** Returns the webhook secrets that are valid now. */
export function validSecrets(world: Pick<DoctorWorld, 'now' | 'readSecrets'>, config: Config): readonly KnownSecret[] {
  return world.readSecrets(config).filter((one) => isValidAt(one, world.now()))
}

/** Says that what is in the file of secrets is not known, nor what the daemon has of it; null: it can be read, or there is none. */
export function unreadSecrets(config: Config): string | null {
  const fault = faultOfSecretFile(secretFilePath(config))
  return fault === null ? null : `the webhook secrets are not known: their file ${fault}`
}

/** What is said where there is none. */
export const NO_SECRET = 'no webhook secret is valid here: events are not received'
