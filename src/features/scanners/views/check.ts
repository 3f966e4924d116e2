import { messageOf } from '../../../base/errors.ts'
import { openViewsReader } from '../../../store/database/open.ts'
import { type ViewsKind, readVexGeneration, generationDir, readCurrentViews, viewsPath } from '../store/generations.ts'
import { createViewsWriter } from '../store/writes.ts'
import { isDatabaseSame } from './osv/database-sum.ts'
import { WHOLE } from './osv/whole.ts'
import { isSoundFile } from './files.ts'

/** Reads the views in use to their end: what is wrong with each kind, in one line; empty when nothing is, or there are none. */
export function checkViews(dataDir: string): { kind: ViewsKind; fault: string }[] {
  const kinds: ViewsKind[] = ['osv', 'vex']
  return kinds.flatMap((kind) => {
    try {
      const fault = kind === 'osv' ? faultOfBucket(dataDir) : faultOfVex(dataDir)
      return fault === null ? [] : [{ kind, fault }]
    } catch (error) {
      return [{ kind, fault: messageOf(error) }]
    }
  })
}

function faultOfBucket(dataDir: string): string | null {
  const current = readCurrentViews(dataDir, 'osv')
  if (current === null) return null
  const folder = generationDir(dataDir, current.name)
  const db = openViewsReader(viewsPath(folder))
  try {
    const { isSound, listFiles } = createViewsWriter(db)
    if (!isDatabaseSame(folder) || !isSound()) return 'their database is damaged'
    // The archive of everything is the published one, which is checked as such.
    const damaged = listFiles().find((file) => file !== WHOLE && !isSoundFile(folder, file))
    return damaged === undefined ? null : `${damaged} is damaged`
  } finally {
    db.close()
  }
}

function faultOfVex(dataDir: string): string | null {
  const made = readVexGeneration(dataDir)
  return made === null || isSoundFile(made.folder, made.file) ? null : `${made.file} is damaged`
}
