#include "streams/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include "streams/metadata.hpp"
#include "streams/pattern_parser.hpp"
#include "streams/typing.hpp"

namespace heddle::streams {
namespace {

/// Names that are known here; those outside are, too.
struct Scope {
    const Scope* outer = nullptr;
    std::map<std::string, Type, std::less<>> types;
    std::map<std::string, Signature, std::less<>> signatures;
    std::map<std::string, const NetDefinition*, std::less<>> nets;
    std::map<std::string, const BoxDefinition*, std::less<>> boxes;

    template <class T>
    [[nodiscard]] const T* find(std::map<std::string, T, std::less<>> Scope::*names,
                                std::string_view name) const {
        for (const Scope* scope = this; scope != nullptr; scope = scope->outer)
            if (const auto found = (scope->*names).find(name); found != (scope->*names).end())
                return &found->second;
        return nullptr;
    }
};

constexpr int kMostNested = 200;
/// Through nets and files.
constexpr int kMostNestedInAll = 1'000;
/// Of what a net is made of, each part as often as it is used: nets that each use the one before twice double
/// it.
constexpr size_t kMostParts = 1'000'000;

/// What the files of one program have in common.
struct Files {
    std::vector<std::filesystem::path> open;  ///< one named in the other
    int depth = 0;                            ///< of what is being read, in all of them
    std::map<std::filesystem::path, const NetDefinition*> nets;
    std::map<std::string, const BoxDefinition*, std::less<>> boxes;
};

[[nodiscard]] std::unique_ptr<Program> parse(Source source, Files& files);

class Parser : PatternParser {
  public:
    Parser(std::unique_ptr<Program> program, Files& files)
        : PatternParser(program->source), program_(std::move(program)), files_(files) {}

    std::unique_ptr<Program> program() {
        Scope scope;
        while (now().kind != TokenKind::kEnd) definition(scope, program_->boxes, program_->nets);
        if (program_->nets.empty()) fail(now().place, "there is no net to run: \"net NAME connect ...;\"");
        metadata_.apply(*program_, source());
        return std::move(program_);
    }

  private:
    using Boxes = std::vector<std::unique_ptr<BoxDefinition>>;
    using Nets = std::vector<std::unique_ptr<NetDefinition>>;

    void definition(Scope& scope, Boxes& boxes, Nets& nets) {
        if (at("box")) {
            boxes.push_back(box(scope));
        } else if (at("net")) {
            net(scope, nets);
        } else if (skip("typesig")) {
            const Token called = name("a signature");
            expect("=", "and the signature after it");
            scope.signatures[std::string(called.text)] = signature(scope);
            expect(";", "to end the definition");
        } else if (skip("type")) {
            const Token called = name("a type");
            expect("=", "and the type after it");
            scope.types[std::string(called.text)] = type(scope);
            expect(";", "to end the definition");
        } else if (at("<") && lexer().peek().is("metadata")) {
            lexer().take();
            const Token text = lexer().take_until("</metadata>");
            metadata_.read(text.text, text.place, source(), open_nets_);
        } else {
            fail(now().place, "a definition is wanted here: box, net, type, typesig or <metadata>");
        }
    }

    std::unique_ptr<BoxDefinition> box(Scope& scope) {
        auto made = begin_definition<BoxDefinition>(scope, "a box");
        expect("(", "for the box's signature");
        made->is_initialiser = !at("(");
        if (!made->is_initialiser) made->input = tuple("(", ")", true);
        expect("->", "between what a box takes and what it gives");
        if (at("(")) {
            made->outputs.push_back(tuple("(", ")", true));
            while (skip("|")) made->outputs.push_back(tuple("(", ")", true));
        }
        expect(")", "to end the signature");
        if (skip("{")) {
            if (!at("<<<")) fail(now().place, "\"<<<\" is wanted here: {<<< C | code >>>}");
            lexer().take();
            made->language = name("a language").text;
            if (!at("|")) fail(now().place, "\"|\" is wanted here, and the code after it");
            const Token code = lexer().take_until(">>>");
            made->code = code.text;
            made->code_place = code.place;
            expect("}", "to end the box");
        } else {
            expect(";", "to end the box");
        }
        scope.boxes[made->name] = made.get();
        check_is_one_function(*made);
        return made;
    }

    /// A box's function has the box's name, whatever net the box is in.
    void check_is_one_function(const BoxDefinition& box) {
        const auto [known, is_new] = files_.boxes.try_emplace(box.name, &box);
        const BoxDefinition& other = *known->second;
        if (is_new || (box.code.empty() && other.code.empty() && box.input == other.input &&
                       box.outputs == other.outputs && box.is_initialiser == other.is_initialiser))
            return;
        fail(box.place,
             fmt::format("a box \"{}\" with another signature or with code is at {}, and both would be "
                         "one function: rename one of them",
                         box.name, other.place.source->where(other.place)));
    }

    /// Its word and its name, which is new.
    template <class Definition>
    std::unique_ptr<Definition> begin_definition(const Scope& scope, const char* what) {
        lexer().take();
        const Token called = name(what);
        if (scope.nets.contains(called.text) || scope.boxes.contains(called.text))
            fail(called.place, fmt::format("\"{}\" is defined already", called.text));
        auto made = std::make_unique<Definition>();
        made->name = called.text;
        made->place = called.place;
        return made;
    }

    /// Returns when the net is in `nets`.
    void net(Scope& outer, Nets& nets) {
        auto made = begin_definition<NetDefinition>(outer, "a net");
        if (skip("(")) {
            made->has_signature = true;
            made->signature = signature(outer);
            expect(")", "to end the signature");
        }
        // Known from here on: a net may use itself.
        NetDefinition& net = *made;
        outer.nets[net.name] = &net;
        nets.push_back(std::move(made));
        if (at(";")) {
            if (const auto file = file_of(net.name)) {
                net.body = std::make_unique<Topology>(of_net(external(*file, net.place), net.place));
                measure(net);
            }
            lexer().take();
            return;
        }
        Scope inner;
        inner.outer = &outer;
        if (skip("{")) {
            const Level level(*this, net.place);
            open_nets_.push_back(net.name);
            while (!at("}")) {
                if (now().kind == TokenKind::kEnd) fail(net.place, "the body of this net has no end: \"}\"");
                definition(inner, net.boxes, net.nets);
            }
            open_nets_.pop_back();
            lexer().take();
        }
        expect("connect", "and what the net is made of");
        net.body = std::make_unique<Topology>(choice(inner));
        measure(net);
        expect(";", "to end the net");
    }
    static void measure(NetDefinition& net) {
        net.height = net.body->height_through_nets;
        net.size = net.body->size_through_nets;
    }

    /// Of what is inside of something else.
    class Level {
      public:
        Level(Parser& parser, const Place& place) : parser_(parser) {
            if (++parser.depth_ > kMostNested || ++parser.files_.depth > kMostNestedInAll)
                parser.fail_as_nested(place);
        }
        ~Level() {
            --parser_.depth_;
            --parser_.files_.depth;
        }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

      private:
        Parser& parser_;
    };
    [[noreturn]] void fail_as_too_many(const Place& place) const {
        fail(place, "this would be more than a million parts, each counted as often as it is used");
    }
    [[noreturn]] void fail_as_nested(const Place& place) const {
        fail(place, "this is nested too deeply: its parts, and theirs, and so on");
    }

    /// Names double what they stand for, and names of those.
    static void check_doubled(size_t types, const Token& name) {
        check_number(types, fmt::format("\"{}\" is a part of is", name.text), name.place);
    }

    Signature signature(const Scope& scope) {
        Signature maps;
        do {
            if (now().kind == TokenKind::kIdentifier) {
                const Token called = now();
                if (const Signature* known = scope.find(&Scope::signatures, called.text)) {
                    lexer().take();
                    maps.insert(maps.end(), known->begin(), known->end());
                    check_doubled(maps.size(), called);
                    continue;
                }
            }
            Map map;
            if (!at("->")) map.input = type(scope);
            expect("->", "between what a net takes and what it gives");
            if (skip("..."))
                map.infer = true;
            else if (at("{") || now().kind == TokenKind::kIdentifier)
                map.output = type(scope);
            maps.push_back(std::move(map));
        } while (skip(","));
        return maps;
    }

    Type type(const Scope& scope) {
        Type variants;
        do {
            if (now().kind != TokenKind::kIdentifier) {
                variants.push_back(tuple("{", "}", true));
                continue;
            }
            const Token called = name("a type");
            const Type* known = scope.find(&Scope::types, called.text);
            if (known == nullptr)
                fail(called.place, fmt::format("there is no type \"{}\" before this line", called.text));
            variants.insert(variants.end(), known->begin(), known->end());
            check_doubled(variants.size(), called);
        } while (skip("|"));
        return variants;
    }

    Topology choice(const Scope& scope) {
        const Level level(*this, now().place);
        return joined(scope, "|", [&] { return ordered_choice(scope); });
    }
    Topology ordered_choice(const Scope& scope) {
        return joined(scope, "||", [&] { return joined(scope, "..", [&] { return replicated(scope); }); });
    }
    template <class Operand>
    Topology joined(const Scope&, std::string_view symbol, const Operand& operand) {
        Topology first = operand();
        if (!at(symbol)) return first;
        Topology made(symbol == ".." ? TopologyKind::kSerial : TopologyKind::kChoice, now().place);
        made.ordered = symbol == "||";
        made.parts.push_back(std::move(first));
        while (skip(symbol)) made.parts.push_back(operand());
        return measured(std::move(made));
    }
    /// With its height, which is that of the recursions through it.
    Topology measured(Topology made) const {
        for (const Topology& part : made.parts) {
            made.height = std::max(made.height, part.height + 1);
            made.height_through_nets = std::max(made.height_through_nets, part.height_through_nets + 1);
            made.size_through_nets += part.size_through_nets;
        }
        if (made.size_through_nets > kMostParts) fail_as_too_many(made.place);
        if (made.height > kMostNested || made.height_through_nets > kMostNestedInAll)
            fail_as_nested(made.place);
        return made;
    }

    Topology replicated(const Scope& scope) {
        Topology made = primary(scope);
        while (true) {
            const Token token = now();
            if (token.is("*") || token.is("**") || token.is("\\")) {
                lexer().take();
                made = around(std::move(made), token.is("\\") ? TopologyKind::kFeedback : TopologyKind::kStar,
                              token);
                do made.patterns.push_back(pattern());
                while (skip(","));
            } else if (token.is("!") || token.is("!!") || token.is("!@") || token.is("!!@")) {
                lexer().take();
                made = around(std::move(made), TopologyKind::kSplit, token);
                expect("<", "for the tag that chooses the replica");
                made.tag = tag_name();
                expect(">", "to end the tag");
            } else if (token.is("@")) {
                lexer().take();
                made = around(std::move(made), TopologyKind::kPlaced, token);
                if (now().kind != TokenKind::kInteger)
                    fail(now().place, "the number of a node is wanted here");
                const Token node = lexer().take();
                const auto [end, error] =
                    std::from_chars(node.text.data(), node.text.data() + node.text.size(), made.node);
                if (error != std::errc()) fail(node.place, "there cannot be so many nodes");
            } else {
                return made;
            }
        }
    }
    Topology around(Topology inner, TopologyKind kind, const Token& symbol) const {
        Topology made(kind, symbol.place);
        made.ordered = symbol.is("**") || symbol.is("!!") || symbol.is("!!@");
        made.parts.push_back(std::move(inner));
        return measured(std::move(made));
    }

    Topology primary(const Scope& scope) {
        const Place place = now().place;
        if (skip("(")) {
            Topology inner = choice(scope);
            expect(")", "to end what the '(' began");
            return inner;
        }
        if (at("[|")) return sync();
        if (at("[")) return filter();
        const Token called = name("a box or a net");
        // The innermost scope that knows the name tells what it is.
        for (const Scope* at = &scope; at != nullptr; at = at->outer) {
            if (const auto box = at->boxes.find(called.text); box != at->boxes.end()) {
                Topology made(TopologyKind::kBox, place);
                made.box = box->second;
                return made;
            }
            if (const auto net = at->nets.find(called.text); net != at->nets.end())
                return of_net(*net->second, place);
        }
        if (const auto file = file_of(called.text)) return of_net(external(*file, called.place), place);
        fail(called.place, fmt::format("there is no box and no net \"{}\" before this line, and no file {}",
                                       called.text, beside(called.text).string()));
    }
    Topology of_net(const NetDefinition& net, const Place& place) const {
        Topology made(TopologyKind::kNet, place);
        made.net = &net;
        made.height_through_nets = net.height + 1;
        if (made.height_through_nets > kMostNestedInAll) fail_as_nested(place);
        made.size_through_nets = net.size + 1;
        if (made.size_through_nets > kMostParts) fail_as_too_many(place);
        return made;
    }

    /// Called as the net, in the folder of the program.
    [[nodiscard]] std::filesystem::path beside(std::string_view net) const {
        return std::filesystem::path(source().name()).parent_path() / (std::string(net) + ".snet");
    }
    /// Nothing: there is no such file, or it is this one.
    [[nodiscard]] std::optional<std::filesystem::path> file_of(std::string_view net) const {
        std::filesystem::path file = beside(net);
        if (!std::filesystem::exists(file) ||
            std::filesystem::path(source().name()).filename() == file.filename())
            return std::nullopt;
        return file;
    }
    /// Its last net.
    const NetDefinition& external(const std::filesystem::path& file, const Place& place) {
        const std::filesystem::path path = std::filesystem::weakly_canonical(file);
        if (const auto known = files_.nets.find(path); known != files_.nets.end()) return *known->second;
        if (std::ranges::find(files_.open, path) != files_.open.end())
            fail(place,
                 fmt::format("the file {} is used by what it uses itself: a net of another file is whole "
                             "before it is used",
                             file.string()));
        const Level level(*this, place);
        program_->externals.push_back(parse(Source::of_file(file.string()), files_));
        return *(files_.nets[path] = &program_->externals.back()->main());
    }

    std::unique_ptr<Program> program_;
    Files& files_;
    MetadataReader metadata_;
    std::vector<std::string> open_nets_;  // whose bodies are being read
    int depth_ = 0;
};

std::unique_ptr<Program> parse(Source source, Files& files) {
    files.open.push_back(std::filesystem::weakly_canonical(source.name()));
    std::unique_ptr<Program> program =
        Parser(std::make_unique<Program>(Program{std::move(source), {}, {}, {}}), files).program();
    files.open.pop_back();
    return program;
}

}  // namespace

std::unique_ptr<Program> parse(Source source) {
    Files files;
    return parse(std::move(source), files);
}

}  // namespace heddle::streams
