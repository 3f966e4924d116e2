import type { PeoplePages, PeopleTools } from '../server/people.ts'
import type { ServerPlugin } from '../server/plugin.ts'
import type { FollowedParts } from '../server/followers/routes.ts'
import type { ShownParts } from '../server/status/reports.ts'
import type { Verbs } from '../cli/verbs/verb.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../base/log.ts'
import type { FleetStatus } from '../base/reports/fleet.ts'
import type { PinnedReads } from '../store/reads.ts'
import type { SyncThread } from '../sync/thread.ts'
import type { InboxView } from './inbox-view.ts'
import type { Signals } from './signals.ts'

/** What a feature adds to the program. Every part is optional, and the core imports none of it. */
export interface Feature {
  /** That of its folder in `features/`. */
  readonly name: string
  /** The features whose modules it imports. */
  readonly needs?: readonly string[]
  /** Its commands, by the group of the help page. */
  readonly verbs?: Verbs
  /** Returns the numbers of the formats that it reads and writes, for `patchmirror --version --json`. */
  readonly formats?: () => Promise<Readonly<Record<string, number>>>
  /** Loads what it adds to commands of the core. */
  readonly commands?: () => Promise<CommandPart>
  /** Loads what checks the data that it derives from the store. */
  readonly derived?: () => Promise<DerivedData>
  /** Loads what it does in the daemon: a command does not wait for that. */
  readonly daemon?: () => Promise<DaemonPart>
}

/** What a feature adds to commands of the core. */
interface CommandPart {
  /** Refuses a run of a command that could not be published. */
  readonly refuseRun?: (config: Config) => Promise<void>
  /** Throws while it could not fill a mirror again that has no upstream. */
  readonly refuseRepair?: (config: Config) => Promise<void>
  /** Returns what the status has of it where no daemon answers, a line each. */
  readonly statusLines?: (config: Config) => readonly string[]
}

/** Data that a feature derives from the store, and nothing else: where it is damaged, it is made again. */
export interface DerivedData {
  /** For messages. */
  readonly what: string
  /** Returns what of it is damaged, and how; nothing where it is not there. */
  readonly check: (dataDir: string) => readonly DerivedFault[]
  /** Makes a kind of it again. Throws `locked` while another process does. */
  readonly makeAgain: (settings: DerivedSettings, kind: string) => Promise<unknown>
}

/** What is wrong with a kind of derived data. */
export interface DerivedFault {
  readonly kind: string
  readonly fault: string
}

/** The settings that derived data is made by; they are passed to a thread. */
export type DerivedSettings = Pick<Config, 'data' | 'views'>

/** What a feature does in the daemon. */
export interface DaemonPart {
  /** Decides what is served, and when runs may start; null: the settings do not ask for that. One feature has it. */
  readonly gate?: (parts: GateParts) => Gate | null
  /** Starts it, before the server. */
  readonly start?: (parts: Parts) => RunningPart
  /** Makes what it answers of the mirror's own paths. */
  readonly answers?: (parts: AnswerParts) => Answers
}

/** What the parts of a daemon are made from. */
export interface AnswerParts {
  readonly config: Config
  readonly version: string
}

/** What a feature is started with. */
export interface Parts extends AnswerParts {
  readonly log: Logger
  readonly now: () => number
  /** No connections. */
  readonly offline: boolean
  readonly reads: PinnedReads
  readonly thread: SyncThread
  readonly signals: Signals
  /** webhooks.db, as the serving thread reads it. */
  readonly inbox: InboxView
  /** How far the run of a source is; null: none is under way. */
  readonly progressOf: NonNullable<ShownParts['progressOf']>
  /** Reports whether the cause of a fault is in the log, as that of a database which all parts use. */
  readonly isExplained: (message: string) => boolean
  /** Whether this mirror syncs and passes events on now. */
  readonly leads: () => boolean
}

/** A feature that runs. */
export interface RunningPart {
  /** What the server shows of it. */
  readonly shown?: ShownParts
  /** What it adds to the stream of events, and what it gets of that. */
  readonly followed?: FollowedParts
  /** Add its paths to the server. */
  readonly plugins?: readonly ServerPlugin[]
  /** Resolves when what is published from now on reaches it; never rejects. */
  readonly placed?: Promise<unknown>
  /** Ends what is under way, before the server. */
  readonly close?: () => Promise<void> | void
}

/** Paths of the mirror's own that features answer. */
export interface Answers {
  readonly people?: (tools: PeopleTools) => PeoplePages
  readonly plugins?: readonly ServerPlugin[]
}

/** What a gate is made from: it acts by calls alone. */
export interface GateParts {
  readonly config: Config
  readonly version: string
  readonly log: Logger
  readonly now: () => number
  readonly offline: boolean
  readonly reads: PinnedReads
  /** Something else may be served: the serving side is to look. */
  readonly onReleased: () => void
  /** Runs may start again. */
  readonly onServed: () => void
  /** This mirror syncs and passes events on from now on, or does not any more. */
  readonly onLead: (leads: boolean) => void
}

/** Decides what is served, and when runs may start. */
export interface Gate {
  /** What is served. */
  readonly reads: PinnedReads
  /** Whether this mirror syncs and publishes now. */
  leads(): boolean
  /** Whether a run may start. */
  mayRun(): boolean
  /** A run ended, which may have published a snapshot. `isLast`: no other run has reported progress, so none is known to do so soon. */
  committed(isLast: boolean): void
  readonly status: () => FleetStatus
  /** Why a delivery is not taken here; null: it is. */
  refusal(): string | null
  /** Adds its paths to the server. */
  readonly plugins: readonly ServerPlugin[]
  /** Takes part from now on; `listening`: the URL of the listener. */
  begin(listening: string): void
  /** Takes over the settings that are in force. */
  apply(): void
  close(): Promise<void>
}
