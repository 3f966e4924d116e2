import { expect } from 'vitest'
import { type PlainBench, plainBench, tickets } from '../../support/catalog/plain-service.ts'
import { PAGING_FORMS, answerIn } from '../../support/catalog/paging-forms.ts'
import { bothTest, telling } from '../../support/tables.ts'

const PATH = '/v1/patches'
const PAGE = 25
const COUNT = 60 // three pages, the last of 10

type Ticket = ReturnType<typeof tickets>[number]

/** What happens to a list after its first page was read. */
const CHANGES: Readonly<Record<string, (all: Ticket[]) => void>> = {
  'the first item is removed': (all) => void all.shift(),
  'an item is added before the first': (all) => void all.unshift({ ticket_id: 't-900', n: 900 }),
  'an item of the second page moves to the front': (all) => void all.unshift(...all.splice(30, 1)),
  'the last page is removed': (all) => void all.splice(50, 10),
}

/** Forms whose pages are asked for by position, so that a change moves items over the border of two pages. */
const FORMS = Object.entries(PAGING_FORMS).filter(([name]) =>
  /^(nothing, a fixed page, (offset|page numbers)|a header (X-Next-Cursor|Content-Range, offset|X-Total-Pages)|a total, offset|page and total_pages, page|resume_key|JSON:API|HAL|a page number that stays|done)/.test(
    name,
  ),
)

function idsOf({ store }: PlainBench): string[] {
  const list = store.catalog.readList(PATH)
  return list === null ? [] : [...store.catalog.eachEntry(list.id)].map(({ id }) => id)
}

bothTest.each(telling(FORMS, 'nothing, a fixed page, offset'))(
  'a run that ends as complete has lost no item of a list that changes between two pages: %s',
  async (name, form) => {
    for (const [what, change] of Object.entries(CHANGES)) {
      const all = tickets(COUNT)
      let isArmed = false
      const made = await plainBench({
        [PATH]: (url) => {
          const answer = answerIn(form, all, url.searchParams)
          if (isArmed) change(all)
          isArmed = false
          return answer
        },
      })
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      const before = new Set(all.map(({ ticket_id: id }) => id))
      isArmed = true
      const { state } = await made.run('catalog')
      const stored = new Set(idsOf(made))
      const lost = all.map(({ ticket_id: id }) => id).filter((id) => before.has(id) && !stored.has(id))
      expect({ what, lost }).toEqual({ what, lost: [] })
      expect(['complete', 'partial']).toContain(state)
      // A refusal behind a full page is no evidence of the end: nothing is removed.
      const isProved = !name.endsWith('400 behind the last') || all.length % PAGE !== 0
      expect(await made.run('catalog')).toMatchObject({ state: isProved ? 'complete' : 'partial' })
      const expected = isProved ? all.map(({ ticket_id: id }) => id) : [...before]
      expect(idsOf(made).sort()).toEqual(expected.sort())
    }
  },
)
