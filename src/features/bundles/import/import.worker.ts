import { basename } from 'node:path'
import type { Config } from '../../../config/schema.ts'
import { messageOf } from '../../../base/errors.ts'
import { goOffline } from '../../../base/offline.ts'
import type { RunTrigger } from '../../../store/runs/runs.ts'
import { openWrites } from '../../../store/writer.ts'
import { applyBundle } from './apply.ts'
import type { ImportReport } from './types.ts'
import { openBundle } from './open.ts'
import { type RefusalReason, refusalOf } from '../format/refusal.ts'
import { answerTask } from '../../../base/threads/task.ts'
import { trustOf } from '../format/keys.ts'

/** An import as passed to a thread. */
export interface ImportTask {
  config: Pick<Config, 'data' | 'bundle'>
  /** One bundle: its file, or parts of it. */
  files: readonly string[]
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
  const { config, files, trigger, dryRun, allowRollback, allowUnsigned, offline, again = false } = data as ImportTask
  if (offline) goOffline()
  const now = Date.now
  const bundle = await openBundle(files, trustOf(config, { allowUnsigned, now }))
  const store = openWrites(config.data.dir)
  const file = basename(files[0] ?? '')
  try {
    const given = {
      config,
      store,
      bundle,
      file,
      trigger,
      dryRun,
      allowRollback,
      again,
      now,
      progress,
    }
    return { report: await applyBundle(given) }
  } catch (error) {
    const refused = refusalOf(error)
    if (refused === null) throw error
    return { refused, message: messageOf(error) }
  } finally {
    store.close()
    await bundle.close()
  }
})
