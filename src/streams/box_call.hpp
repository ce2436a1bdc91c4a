// BoxPart::Call: one call of a box: its arguments, and what becomes of what it sends.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "heddle/error.hpp"
#include "streams/box.hpp"
#include "streams/box_part.hpp"

namespace heddle::streams {

/// Nanoseconds.
inline uint64_t now_ns() {
    return static_cast<uint64_t>(SteadyClock().now().time_since_epoch().count());
}

class BoxPart::Call final : public BoxCall {
  public:
    /// Fields that the box uses up are its own during the call, so that it may have what no other record has.
    Call(BoxPart& part, Record& record, Flow& flow)
        : part_(part),
          record_(record),
          flow_(flow),
          arguments_(flow.values()),
          sent_(flow.sent()),
          latest_values_(flow.latest()) {
        arguments_.clear();
        sent_.clear();
        for (const Entry& entry : part.box_.input) {
            if (entry.label.kind() != LabelKind::kField)
                arguments_.emplace_back(record.tag(entry.label));
            else if (entry.passes)
                arguments_.emplace_back(record.field(entry.label));
            else
                arguments_.emplace_back(record.lend_field(entry.label));
        }
    }
    /// What the box has used up is gone with its call, not with the next one of the flow.
    ~Call() override { arguments_.clear(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    [[nodiscard]] const BoxDefinition& box() const override { return part_.box_; }
    [[nodiscard]] std::span<BoxValue> arguments() override { return arguments_; }

    void emit_moved(size_t variant, std::span<BoxValue> values) override {
        if (part_.plant_.drops(record_)) return;
        const Variant& declared = check(variant, values);
        // A short call is over soon, and then the flow goes on with it, without another call on this stack.
        if (sent_.size() < kMostSent && part_.is_short()) {
            make_latest();
            latest_ = &declared;
            latest_values_.assign(std::move_iterator(values.begin()), std::move_iterator(values.end()));
            return;
        }
        // With so many it is not short, whatever others take for them.
        if (++at_once_ == kMostSent) measured_ = false;
        const uint64_t begin_ns = measured_ ? now_ns() : 0;
        make_latest();
        Record record = made(declared, values);
        flow_.let_go(&part_);
        Flow& inner = flow_.inner();
        inner.set_empties(part_.emptied_by_one());
        try {
            if (!sent_.empty())
                for (Record& before : std::exchange(sent_, {})) inner.run(part_.exit_, std::move(before));
            inner.run(part_.exit_, std::move(record));
        } catch (...) {
            inner.let_go();
            throw;
        }
        inner.let_go();
        if (measured_) away_ns_ += now_ns() - begin_ns;
    }

    void emit_last(size_t variant, std::span<BoxValue> values) override {
        if (part_.plant_.drops(record_)) return;
        const Variant& declared = check(variant, values);
        if (has_sent()) pass_made();
        become(declared, values);
    }

    /// When the box has returned.
    void pass_sent() {
        if (!has_sent()) return;
        const Variant* const latest = std::exchange(latest_, nullptr);
        pass_made();
        if (latest != nullptr) become(*latest, latest_values_);
    }
    /// Of what it has sent last, before the record goes.
    void make_latest() {
        if (const Variant* const latest = std::exchange(latest_, nullptr))
            sent_.push_back(made(*latest, latest_values_));
    }
    /// When it has thrown, and the record is needed as it came.
    void pass_made() {
        make_latest();
        for (Record& record : sent_) flow_.pass(part_.exit_, std::move(record));
        sent_.clear();
    }

    /// Nanoseconds that the function takes, without what others take for what it sends.
    [[nodiscard]] uint64_t measure(const BoxFunction& function) {
        measured_ = true;
        const uint64_t begin_ns = now_ns();
        function(*this);
        return now_ns() - begin_ns - away_ns_;
    }

    /// The record as it came, but for what the box has taken out of it.
    void put_back() {
        for (size_t i = 0; i < arguments_.size(); ++i)
            if (Field* const field = std::get_if<Field>(&arguments_[i]); field != nullptr && *field)
                record_.set(part_.box_.input[i].label, std::move(*field));
        record_.drop_lent();
    }

  private:
    /// And holds it back.
    [[nodiscard]] bool has_sent() const { return latest_ != nullptr || !sent_.empty(); }
    /// Moves the values out.
    [[nodiscard]] Record made(const Variant& declared, std::span<BoxValue> values) const {
        Record record;
        set_all(record, declared, values);
        inherit_unused(record, record_, part_.used_);
        return record;
    }
    /// The record itself, which the box is done with, goes on as this one; its labels are in the order in
    /// which made() has them.
    void become(const Variant& declared, std::span<BoxValue> values) {
        if (has_just(record_, declared)) {
            set_all(record_, declared, values);
        } else {
            Record next;
            set_all(next, declared, values);
            next.inherit(std::move(record_), part_.used_);
            next.swap_labels(record_);
        }
        flow_.pass(part_.exit_, std::move(record_));
    }
    static void set_all(Record& record, const Variant& declared, std::span<BoxValue> values) {
        for (size_t i = 0; i < values.size(); ++i) {
            if (Field* const field = std::get_if<Field>(&values[i]))
                record.set(declared[i].label, std::move(*field));
            else
                record.set(declared[i].label, std::get<int>(values[i]));
        }
    }
    /// These labels in their order, and no other.
    [[nodiscard]] static bool has_just(const Record& record, const Variant& labels) {
        size_t fields = 0, tags = 0;
        const auto is_next = [](const auto& values, size_t& at, Label label) {
            return at < values.size() && values[at++].first == label;
        };
        for (const Entry& entry : labels)
            if (entry.label.kind() == LabelKind::kField ? !is_next(record.fields(), fields, entry.label)
                                                        : !is_next(record.tags(), tags, entry.label))
                return false;
        return fields == record.fields().size() && tags == record.tags().size();
    }
    const Variant& check(size_t variant, std::span<const BoxValue> values) const {
        const BoxDefinition& box = part_.box_;
        if (variant == 0 || variant > box.outputs.size())
            throw Error(ErrorCode::kBadInput,
                        fmt::format("the box \"{}\" sends variant {}: it has declared {}", box.name, variant,
                                    box.outputs.size()));
        const Variant& declared = box.outputs[variant - 1];
        if (values.size() != declared.size())
            throw Error(ErrorCode::kBadInput,
                        fmt::format("the box \"{}\" sends {} values as variant {}, which has {}", box.name,
                                    values.size(), variant, declared.size()));
        for (size_t i = 0; i < values.size(); ++i)
            if ((declared[i].label.kind() == LabelKind::kField) != std::holds_alternative<Field>(values[i]))
                throw Error(ErrorCode::kBadInput,
                            fmt::format("{} is sent as a {}", declared[i].label.text(),
                                        std::holds_alternative<Field>(values[i]) ? "field" : "tag"));
        return declared;
    }

    /// Of what a short box sends in one call: with more it goes on before the call ends.
    static constexpr size_t kMostSent = 16;

    BoxPart& part_;
    Record& record_;
    Flow& flow_;
    std::vector<BoxValue>& arguments_;
    std::vector<Record>& sent_;        ///< held back until the call is over
    const Variant* latest_ = nullptr;  ///< what it sent after that, or null
    std::vector<BoxValue>& latest_values_;
    size_t at_once_ = 0;  ///< records that went on before the call was over
    bool measured_ = false;
    uint64_t away_ns_ = 0;
};

}  // namespace heddle::streams
