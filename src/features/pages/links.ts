import type { Answer, OwnLink } from '../../answers/answer.ts'
import { type PagePlace, htmlBlocks } from '../../answers/html.ts'
import type { PageCall, PageView } from './page.ts'

/** Returns an answer as a page. `pageAt`: the address of the page whose table begins after this number of rows. */
export function answerView(call: PageCall, answer: Answer, pageAt: PagePlace['pageAt']): PageView {
  const blocks = htmlBlocks(answer, { now: call.now, hrefOf: (link) => hrefOf(call, link), pageAt })
  return { title: answer.title, blocks }
}

/** Returns where this site shows what an answer names. */
function hrefOf({ ui, root }: PageCall, link: OwnLink): string {
  switch (link.kind) {
    case 'record file':
      return root(`/external/osv/${encodeURIComponent(link.name)}.json`)
    case 'search':
      return ui('search', { q: link.name })
    case 'tag':
      return ui('tag', { id: link.name })
    case 'view':
      return ui('packages', { ecosystem: link.name })
    case 'package':
      return ui('package', { ecosystem: link.ecosystem, name: link.name })
    case 'changes':
      return ui('changes', { source: link.source, since: link.since })
  }
}
