import { basename } from 'node:path'
import type { Config } from '../../../config/schema.ts'
import { messageOf } from '../../../base/errors.ts'
import { goOffline } from '../../../base/offline.ts'
import type { RunTrigger } from '../../../store/runs/runs.ts'
import { type Writes, openWrites } from '../../../store/writes.ts'
import { applyBundle } from './apply.ts'
import type { ImportReport } from './types.ts'
import { type Bundle, openBundle } from './open.ts'
import { type RefusalReason, refusalOf } from '../format/refusal.ts'
import { openThin } from '../thin/whole.ts'
import type { OnProgress } from '../../../base/domain/progress.ts'
import { answerTask } from '../../../base/threads/task.ts'
import { type KeyTrust, trustOf } from '../format/keys.ts'

/** An import as passed to a thread. */
export interface ImportTask {
  config: Pick<Config, 'data' | 'bundle'>
  /** One bundle: its file, or parts of it. */
  files: readonly string[]
  /** Of a thin bundle: the file that its whole one is made in, which the caller removes. Null: it is whole. */
  whole: string | null
  trigger: RunTrigger
  dryRun: boolean
  allowRollback: boolean
  again?: boolean
  allowUnsigned: boolean
  offline: boolean
}

/** The result: a report, or why a valid bundle cannot be applied to the stored data. */
export type ImportOutcome = { report: ImportReport } | { refused: RefusalReason; message: string }

answerTask(async (data, progress): Promise<ImportOutcome> => {
  const task = data as ImportTask
  if (task.offline) goOffline()
  const trust = trustOf(task.config, { allowUnsigned: task.allowUnsigned, now: Date.now })
  const bundle = task.whole === null ? await openBundle(task.files, trust) : null
  const store = openWrites(task.config.data.dir)
  try {
    return { report: await applyTask(task, { store, trust, bundle }, progress) }
  } catch (error) {
    const refused = refusalOf(error)
    if (refused === null || refused.kind === 'incomplete') throw error // it says nothing about what is stored
    return { refused, message: messageOf(error) }
  } finally {
    store.close()
    await bundle?.close()
  }
})

/** What is open during an import. A thin bundle is opened when the database has the schema of this program. */
interface Open {
  readonly store: Writes
  readonly trust: KeyTrust
  readonly bundle: Bundle | null
}

async function applyTask(
  task: ImportTask,
  { store, trust, bundle }: Open,
  progress: OnProgress,
): Promise<ImportReport> {
  const { config, files, whole, trigger, dryRun, allowRollback, again = false } = task
  const [first = ''] = files
  const thin = whole === null ? null : await openThin(first, { dataDir: config.data.dir, store, whole, trust })
  const given = bundle ?? thin
  if (given === null) throw new RangeError('no bundle is open')
  const options = { config, store, bundle: given, file: basename(first), trigger, dryRun, allowRollback, again }
  try {
    return await applyBundle({ ...options, now: Date.now, progress })
  } finally {
    await thin?.close()
  }
}
