import type { Tone } from '../lookup/answers/answer.ts'
import type { AnswerBlock, FactsBlock } from '../lookup/answers/html.ts'

/** What a page consists of, in order; each kind has a template of its name. Texts are plain and escaped when rendered. */
export type Block =
  TicksBlock | AnswerBlock | FormBlock | SourcesBlock | ChartBlock | HeadingBlock | OperationBlock | ContentsBlock

/** A heading within a page, with a sentence below it. */
interface HeadingBlock {
  readonly kind: 'heading'
  readonly title: string
  /** Its name in addresses. */
  readonly id?: string
  readonly note?: string
}

/** A field of a form: free text, or one of `options`. */
export interface FormField {
  readonly name: string
  readonly label: string
  readonly value: string
  readonly options?: readonly { readonly value: string; readonly label: string }[]
  readonly hint?: string
}

/** A form that only reads. */
interface FormBlock {
  readonly kind: 'form'
  readonly label: string
  readonly action: string
  readonly fields: readonly FormField[]
  readonly button: string
  /** Parameters that are sent as they are. */
  readonly hidden?: readonly (readonly [name: string, value: string])[]
}

/** The state of a source, in words and figures. */
export interface SourceCard {
  readonly name: string
  readonly tone: Tone
  readonly state: string
  readonly rows: FactsBlock['rows']
}

/** The states of all sources. */
interface SourcesBlock {
  readonly kind: 'sources'
  readonly title: string
  readonly cards: readonly SourceCard[]
}

/** A small bar chart: a bar for each value, with a text for those who cannot see it. */
export interface ChartBlock {
  readonly kind: 'chart'
  readonly title: string
  readonly text: string
  /** Said instead of bars that are all empty. */
  readonly empty: string
  readonly bars: readonly {
    readonly x: number
    readonly y: number
    readonly height: number
    readonly label: string
  }[]
  readonly width: number
  readonly height: number
  readonly barWidth: number
  readonly from: string
  readonly to: string
}

/** A text, with parts that are code. */
export type Prose = readonly { readonly text: string; readonly code: boolean }[]

/** An operation of the API: what it is, what it takes and what it answers. */
export interface OperationBlock {
  readonly kind: 'operation'
  readonly id: string
  readonly name: string
  readonly texts: readonly Prose[]
  readonly lists: readonly {
    readonly title: string
    readonly rows: readonly {
      readonly name: string
      readonly what: string
      readonly lines: readonly Prose[]
    }[]
  }[]
}

/** The list of contents of the operations. */
interface ContentsBlock {
  readonly kind: 'contents'
  readonly parts: readonly {
    readonly id: string
    readonly title: string
    readonly operations: readonly Pick<OperationBlock, 'id' | 'name'>[]
  }[]
}

/** The runs of a source: a tick for each, in order, which says in words what came of the run. */
export interface TickRow {
  readonly name: string
  readonly href: string | null
  readonly summary: string
  readonly ticks: readonly {
    readonly mark: string
    readonly tone: Tone
    readonly label: string
    readonly href: string | null
  }[]
  /** How old the data was in that time, as the path of a line; null: it is not known. The summary says it in words. */
  readonly age: { readonly path: string; readonly width: number; readonly height: number } | null
}

/** Runs as ticks, a row for each source. */
export interface TicksBlock {
  readonly kind: 'ticks'
  readonly title: string
  readonly note: string
  readonly rows: readonly TickRow[]
}
