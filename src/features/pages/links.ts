import type { Answer, DocumentLink, OwnLink, Table } from '../lookup/answers/answer.ts'
import { type AnswerBlock, htmlBlocks } from '../lookup/answers/html.ts'
import { type PageCall, parameter } from './page.ts'

/** Where a page leads beside the other pages: itself, and the documents that it shows. */
interface PageTargets {
  /** Returns the page whose table begins after this number of rows. */
  readonly pageAt?: (at: number) => string
  /** Returns the page whose table begins behind this. */
  readonly pageAfter?: (after: string) => string
  readonly documentHref?: (link: DocumentLink) => string
  /** The first page of a list; null: this is it. */
  readonly first?: string | null
}

/** Returns an answer as blocks of a page. */
export function answerBlocks(call: PageCall, answer: Pick<Answer, 'parts'>, targets: PageTargets = {}): AnswerBlock[] {
  const { pageAt = () => '', pageAfter = () => '', documentHref = () => '', first = null } = targets
  const hrefOf = (link: OwnLink): string => (link.kind === 'document' ? documentHref(link) : namedHref(call, link))
  return htmlBlocks(answer, { now: call.now, hrefOf, pageAt, pageAfter, first })
}

/** Returns the table of a list that is shown page by page; `query`: the parameters of its first page. */
export function listBlocks(
  call: PageCall,
  page: string,
  table: Table,
  query: Readonly<Record<string, string | number>>,
  by: 'after' | 'before' = 'after',
): AnswerBlock[] {
  const isFirst = parameter(call.query, by) === ''
  const pageAfter = (next: string): string => call.ui(page, { ...query, [by]: next })
  return answerBlocks(call, { parts: [table] }, { pageAfter, first: isFirst ? null : call.ui(page, query) })
}

/** Returns where this site shows what an answer names. */
function namedHref({ ui, root }: PageCall, link: Exclude<OwnLink, DocumentLink>): string {
  switch (link.kind) {
    case 'record file':
      return root(`/external/osv/${encodeURIComponent(link.name)}.json`)
    case 'path':
      return root(link.name)
    case 'record':
      return ui('record', { id: link.name })
    case 'vulnerability':
      return ui('cve', { id: link.name })
    case 'tag':
      return ui('tag', { id: link.name })
    case 'view':
      return ui('packages', { ecosystem: link.name })
    case 'package':
      return ui('package', { ecosystem: link.ecosystem, name: link.name })
    case 'findings':
      return ui('tag-findings', { id: link.tag, q: link.of })
    case 'changes':
      return ui('changes', { source: link.source, since: link.since })
  }
}
