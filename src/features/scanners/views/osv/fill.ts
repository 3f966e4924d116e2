import { type ClosedDraft, createClosedDraft } from '../files.ts'
import { type ArchiveDraft, createArchiveDraft } from './archive.ts'
import { type ViewsWork, putView } from './folders.ts'
import type { MemberStream } from './place.ts'
import { placeAll } from './records.ts'
import { createSharedDraft } from './whole.ts'

/**
 * Makes all folders in one walk over the records: each record is read, analysed and compressed once, and goes into the
 * archives of all its views. Null when there are more folders than there may be.
 */
export async function fillAll(work: ViewsWork): Promise<{ records: number; changed: number; list: null } | null> {
  const { dataDir, views, reads, most, pause, rules } = work
  const drafts = new Map<number, ArchiveDraft>()
  const put = (view: number, { id, ...stream }: MemberStream): number => {
    let draft = drafts.get(view)
    if (draft === undefined) {
      const file = createSharedDraft(work.folder, createViewDraft(work.folder, view))
      drafts.set(view, (draft = beginArchive(work, view, file)))
    }
    return draft.add({ ...stream, name: `${id}.json` })
  }
  const prefixes = new Set<string>()
  const source = { dataDir, snapshot: work.snapshot.id }
  const placing = { views, prefixes, put }
  const placed = await placeAll({ reads, rules, source, placing, most, pause })
  if (placed === null) return null
  views.insertWaiting()
  for (const { id: view, name } of views.listViewIds()) {
    const archive = drafts.get(view)?.finish()
    const shown = views.countView(view, prefixes)
    if (archive === undefined || shown === null) throw new Error(`no record is in ${name}`)
    await putView(work, { view, name, archive, prefixes: shown.prefixes }, null)
    await pause()
  }
  return { ...placed, changed: placed.records, list: null }
}

/** Begins the archive of a view; in a file of its own when none is given. */
export function beginArchive({ folder, views, spool }: ViewsWork, view: number, file?: ClosedDraft): ArchiveDraft {
  return createArchiveDraft({
    file: file ?? createViewDraft(folder, view),
    spool,
    onPart: (part) => views.insertPart(view, part),
  })
}

function createViewDraft(folder: string, view: number): ClosedDraft {
  return createClosedDraft(folder, `unfinished-${view}`, '.zip')
}
