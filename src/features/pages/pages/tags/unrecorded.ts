import { counted } from '../../../../base/text.ts'
import { readAsked } from '../../../../store/findings/asked.ts'
import type { FindingsReads, TagFindings } from '../../../../store/findings/reads.ts'
import type { PageCall } from '../../page.ts'

/** Says how many packages of a tag have no finding because no record is about them; none where there are no such packages. */
export function unrecordedNotes(call: PageCall, found: FindingsReads, tag: Pick<TagFindings, 'id'>): string[] {
  const clear = found.listClearOf(tag.id).map((one) => readAsked(one)?.questions ?? [])
  const asked = Map.groupBy(clear.flat(), ({ ecosystem }) => ecosystem.name)
  const count = call.views((views) => {
    const recorded = new Map(
      [...asked].map(([ecosystem, questions]) => {
        const names = [...new Set(questions.map(({ name }) => name))]
        return [ecosystem, views.listRecorded(ecosystem, names)] as const
      }),
    )
    const isRecorded = ({ ecosystem, name }: (typeof clear)[number][number]): boolean =>
      recorded.get(ecosystem.name)?.has(name) === true
    return clear.filter((questions) => !questions.some(isRecorded)).length
  })
  if (count === null || count === 0) return []
  return [
    `no record here is about ${counted(count, 'package')} of the tag, in whatever version: a misspelt name looks the same`,
  ]
}
